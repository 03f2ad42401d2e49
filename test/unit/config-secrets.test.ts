import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { accepted, complaints, load, nodes, routes } from './config-source.ts';

const fromFile = routes('secrets: [{file: /secret}]');
const key = (content: string | Buffer) =>
  (accepted(fromFile, { files: { '/secret': content } }).config.routes[0]!.secrets[0] as Buffer).toString();
const refused = (content: string | Buffer) => {
  const said = complaints(fromFile, { files: { '/secret': content } });
  assert.equal(said.length, 1);
  return said[0];
};

test('B34: one newline at the end of a secret is dropped, other white space at its ends is refused by reference', () => {
  assert.equal(key('s3cr3t'), 's3cr3t');
  assert.equal(key('s3cr3t\n'), 's3cr3t');
  assert.equal(key('s3cr3t\r\n'), 's3cr3t');
  assert.equal(key('s3 cr\n3t'), 's3 cr\n3t');
  const starts =
    'routes[0].secrets[0]: the secret in file /secret starts with white space beyond one newline at its end; remove it';
  const ends = starts.replace('starts', 'ends');
  assert.equal(refused(' s3cr3t'), starts);
  assert.equal(refused('\ufeffs3cr3t'), starts);
  for (const text of ['s3cr3t ', 's3cr3t \n', 's3cr3t\n\n', 's3cr3t\t\r\n', 's3cr3t\r'])
    assert.equal(refused(text), ends);
});

test('B34: a secret that was encoded once too often is warned of by reference', () => {
  const warningsFor = (content: string) =>
    accepted(fromFile, { files: { '/secret': content } }).warnings.filter((text) => text.startsWith('routes'));
  const warning =
    'routes[0].secrets[0]: the secret in file /secret is base64 of a readable text; was it encoded once too often?';
  assert.deepEqual(warningsFor('czNjcjN0'), [warning]);
  assert.deepEqual(warningsFor('czNjcjN0Cg==\n'), [warning]);
  for (const text of ['s3cr3t', 'password', '0123456789abcdef0123456789abcdef', 'C2FVsBQIhrscChlQIMV+b5sSYspob7oD']) {
    assert.deepEqual(warningsFor(text), [], text);
  }
});

test('a secret that is empty, blank, missing or no text is refused by reference', () => {
  const at = 'routes[0].secrets[0]: ';
  for (const text of ['', '\n', '\r\n']) assert.equal(refused(text), `${at}the secret in file /secret is empty`);
  for (const text of [' ', '\n\n']) assert.equal(refused(text), `${at}the secret in file /secret is blank`);
  assert.equal(refused(Buffer.from([0xff, 0xfe])), `${at}file /secret is not UTF-8 text`);
  assert.deepEqual(complaints(fromFile), [`${at}file /secret cannot be read (no such file)`]);
  assert.deepEqual(complaints(routes(), { env: {} }), [`${at}environment variable SECRET is not set`]);
  assert.deepEqual(complaints(routes(), { env: { SECRET: '' } }), [
    `${at}the secret in environment variable SECRET is empty`,
  ]);
  assert.deepEqual(complaints(routes('secrets: [{env: toString}]')), [`${at}environment variable toString is not set`]);
});

test('a sender says what its secrets look like', () => {
  const svix = (value: string) => load(routes('sender: svix'), { env: { SECRET: value } });
  const loaded = svix('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw');
  assert.equal(loaded.ok && (loaded.config.routes[0]!.secrets[0] as Buffer).length, 24);
  const wrong = svix('whsec_no!base64');
  assert.ok(!wrong.ok);
  assert.match(
    wrong.complaints[0]!,
    /^routes\[0\]\.secrets\[0\]: the secret in environment variable SECRET is not base64/,
  );
});

test('a password is read like a secret', () => {
  const text = `service: a\n${routes()}redis: {nodes: [{url: 'redis://a', password: {file: /password}}]}`;
  const env = { SECRET: 'x3cr3t' };
  assert.equal(accepted(text, { env, files: { '/password': 'pass\n' } }).config.redis.nodes[0]!.password, 'pass');
  assert.deepEqual(complaints(text, { env }), [
    'redis.nodes[0].password: file /password cannot be read (no such file)',
  ]);
});

test('a secret in the configuration itself is refused with the way to refer to it, and is not repeated', () => {
  const reference = 'needs a reference, {file: /path/to/secret} or {env: NAME}; a secret is never written here itself';
  assert.deepEqual(complaints(routes('secrets: [hunter2]')), [
    `routes[0].secrets[0]: found a text (not shown); ${reference}`,
  ]);
  assert.deepEqual(complaints(routes('secrets: [12345]')), [
    `routes[0].secrets[0]: found a number (not shown); ${reference}`,
  ]);
  assert.deepEqual(complaints(`service: a\n${routes()}redis: {nodes: [{url: 'redis://a', password: hunter2}]}`), [
    `redis.nodes[0].password: found a text (not shown); ${reference}`,
  ]);
});

/** Ways to paste a secret where it does not belong; in each, `%` stands for the secret. */
const pasted = [
  routes("secrets: '%'"),
  routes("secrets: ['%']"),
  routes("secrets: [{'%'}]"),
  routes("secrets: {'%': x}"),
  routes("secrets: [{file: '%'}]"),
  routes("secrets: [{value: '%'}]"),
  routes("secret: '%'"),
  routes("secrets: [['%']]"),
  `service: a\n${nodes('redis://:%@a')}${routes()}`,
  `service: a\n${nodes('redis://me:%')}${routes()}`,
  `service: a\n${nodes('redis://a/?password=%')}${routes()}`,
  `service: a\n${nodes('http://x:%@a')}${routes()}`,
  `redis: {nodes: 'redis://:%@a'}\n${routes()}`,
  `redis: {nodes: ['redis://:%@a']}\n${routes()}`,
  `redis: 'redis://:%@a'\n${routes()}`,
  `upstream: 'http://me:%@app'\n${routes()}`,
  `upstream: {url: 'http://me:%@app'}\n${routes()}`,
  `service: a\nredis: {nodes: [{url: 'redis://a', password: {'%'}}]}\n${routes()}`,
  `service: a\nredis: {nodes: [{url: 'redis://a', password: {file: '%'}}]}\n${routes()}`,
  `service: a\nredis: {nodes: [{url: 'redis://a', password: ['%']}]}\n${routes()}`,
  // Not even YAML.
  `routes: [{secrets: ["%]`,
  `routes: [{secrets: "%" "x"}]`,
  `secrets: "%"x`,
  `secrets: @%`,
  `secrets: !%`,
  `secrets: *%`,
  `secrets: "\\y%"`,
  `secrets: a\nsecrets: %`,
  `%: 1\n%: 2`,
];

test('no complaint repeats a secret, wherever it was pasted', () => {
  const secret = fc.stringMatching(/^[A-Za-z][A-Za-z0-9]{11,40}$/);
  fc.assert(
    fc.property(secret, fc.constantFrom(...pasted), (value, form) => {
      const loaded = load(form.replaceAll('%', value));
      assert.ok(!loaded.ok);
      for (const complaint of loaded.complaints) assert.ok(!complaint.includes(value), complaint);
    }),
    { numRuns: 400 },
  );
});
