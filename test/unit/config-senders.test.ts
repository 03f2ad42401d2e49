/** What a route may say about its sender's ways, and what is wrong with it. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';
import { senders } from '../../src/senders/index.ts';
import { accepted, complaints, routes, secret } from './config-source.ts';

const routeOf = (more: string, env?: Record<string, string>) =>
  accepted(routes(more), { env: { SECRET: secret, ...env } }).config.routes[0]!;
const own = (more: string) =>
  `routes: [{name: own, path: /own, secrets: [{env: SECRET}], identity: {parts: [{header: x-id}]}, ${more}}]`;
const ownRoute = (more: string, value = secret) => accepted(own(more), { env: { SECRET: value } }).config.routes[0]!;
const only = (text: string) => {
  const all = complaints(text);
  assert.equal(all.length, 1, all.join('\n'));
  return all[0]!;
};

test('every preset can be configured as its page says', () => {
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const special: Record<string, string> = {
    adyen: 'ab'.repeat(32),
    'adyen-platform': 'ab'.repeat(32),
    'aws-sns': 'arn:aws:sns:eu-central-1:123456789012:orders',
    discord: 'ab'.repeat(32),
    'discord-events': 'ab'.repeat(32),
    plaid: '0123456789abcdef01234567:s3cr3t',
    sendgrid: publicKey.export({ type: 'spki', format: 'der' }).toString('base64'),
  };
  const whsec = ['clerk', 'gitlab-signing-token', 'standard-webhooks', 'svix'];
  const urls = ['hubspot', 'hubspot-v3', 'square', 'twilio'];
  for (const name of senders.keys()) {
    const value = special[name] ?? (whsec.includes(name) ? 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' : secret);
    const url = urls.includes(name) ? ', publicUrl: https://hooks.example.com/a' : '';
    const secrets = name === 'mollie' ? ', secrets: []' : '';
    const route = routeOf(`sender: ${name}${url}${secrets}`, { SECRET: value });
    assert.equal(route.sender, name);
    assert.equal(route.handshake, senders.get(name)!.handshake);
    assert.equal(route.secrets.length, name === 'mollie' ? 0 : 1);
  }
});

test('the public URL is needed where it is signed, and only there', () => {
  assert.deepEqual(routeOf('sender: square, publicUrl: "https://hooks.example.com/square?tenant=a%2Fb"').publicUrl, {
    base: 'https://hooks.example.com/square',
    isOrigin: false,
    query: 'tenant=a%2Fb',
  });
  assert.match(
    only(routes('sender: twilio')),
    /^routes\[0\]\.publicUrl: found nothing, but the signatures of Twilio cover the URL/,
  );
  for (const url of ['hooks.example.com', '/path', 'https://h/p#rc=3', 'ftp://h/'])
    assert.match(only(routes(`sender: twilio, publicUrl: "${url}"`)), /publicUrl: found .*; needs a URL such as/, url);
  assert.ok(!complaints(routes('sender: twilio, publicUrl: "https://user:pa55word@h p/"')).join().includes('pa55word'));
  const unused = accepted(routes('publicUrl: https://h/p')).warnings;
  assert.ok(unused.some((line) => line.startsWith('routes[0].publicUrl: has no effect')));
  const password = accepted(routes('sender: twilio, publicUrl: "https://user:pa55word@h/p"')).warnings;
  assert.ok(password.some((line) => line.includes('password')) && !password.join().includes('pa55word'));
});

test('the window can be set where there is one that can be', () => {
  const paddle = routeOf('sender: paddle, tolerance: 5m').signature;
  assert.equal('timestamp' in paddle && paddle.timestamp?.toleranceMs, 300_000);
  const standard = routeOf('sender: svix, tolerance: 1m', {
    SECRET: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  }).signature;
  assert.ok(standard.scheme === 'first-of' && standard.rules.every((rule) => rule.timestamp?.toleranceMs === 60_000));
  for (const name of ['github', 'gitlab', 'mailgun'])
    assert.match(only(routes(`sender: ${name}, tolerance: 1m`)), /^routes\[0\]\.tolerance: found a window, but/);
  assert.match(only(routes('sender: paddle, tolerance: 5')), /tolerance/);
});

test('a handshake may have a token of its own, and show what it was given', () => {
  const meta = routeOf('sender: meta, handshake: {token: {env: TOKEN}}', { TOKEN: 'verify-me' });
  assert.deepEqual(meta.handshakeToken, Buffer.from('verify-me'));
  assert.equal(routeOf('sender: notion, handshake: {reveal: true}').handshakeReveal, true);
  assert.match(only(routes('handshake: {reveal: true}')), /handshake: found settings, but GitHub has no handshake/);
  assert.match(
    only(routes('sender: meta, handshake: {token: {env: TOKEN}}')),
    /handshake\.token: environment variable TOKEN is not set/,
  );
  assert.match(
    only(routes('sender: slack, handshake: {token: {env: SECRET}}')),
    /handshake\.token: found a reference, but/,
  );
  const written = complaints(routes('sender: meta, handshake: {token: pa55word}')).join();
  assert.ok(written.includes('handshake.token') && !written.includes('pa55word'));
});

test('a replay guard goes by what the signature covers', () => {
  assert.deepEqual(routeOf('replayGuard: 7d').replayGuard, { of: 'body', windowMs: 7 * 86_400_000 });
  assert.deepEqual(routeOf('sender: mailgun, replayGuard: 9h').replayGuard, {
    of: 'signed-id',
    windowMs: 9 * 3_600_000,
  });
  for (const text of ['', 'replayGuard: off', 'sender: mailgun, replayGuard: off'])
    assert.equal(routeOf(text).replayGuard, undefined);
  for (const text of ['true', '1', '0s', 'on'])
    assert.match(only(routes(`replayGuard: ${text}`)), /replayGuard: found .*; needs .*off/, text);
});

test('replays are guarded against, unless said otherwise, where never two events have one content', () => {
  const guarded = [...senders.values()].filter((sender) => sender.guarded).map(({ name }) => name);
  assert.deepEqual(guarded.toSorted(), ['linear', 'mailgun', 'paypal', 'razorpay']);
  const route = routeOf('sender: mailgun, retention: 9d');
  assert.deepEqual(route.replayGuard, { of: 'signed-id', windowMs: 9 * 86_400_000 });
  assert.deepEqual(routeOf('sender: razorpay').replayGuard, {
    of: 'body',
    windowMs: routeOf('sender: razorpay').retentionMs,
  });
});

test('what happens to the same id with another body can be said', () => {
  assert.equal(routeOf('').fingerprint, undefined);
  for (const way of ['refuse', 'forward'] as const) assert.equal(routeOf(`fingerprint: ${way}`).fingerprint, way);
});

test('what happens without an identity can be said alone', () => {
  const github = senders.get('github')!.identity;
  assert.deepEqual(routeOf('identity: {missing: forward}').identity, { ...github, missing: 'forward' });
  assert.equal(routeOf('identity: {parts: [{header: x-id}], missing: bodyHash}').identity.missing, 'bodyHash');
  assert.match(
    only(routes('identity: {missing: drop}')),
    /missing: found "drop"; needs one of reject, forward, bodyHash/,
  );
});

test('a sender that signs nothing takes no secret, and is warned of', () => {
  const { warnings } = accepted(routes('sender: mollie, secrets: []'));
  assert.ok(warnings.includes('routes[0].sender: mollie: anybody who can reach the gateway can post here'));
  assert.match(
    only(routes('sender: mollie')),
    /secrets: found secrets, but Mollie, classic webhooks are not signed; needs none/,
  );
});

test('a route may describe its own scheme: hashes, public keys, encoded keys, tokens, the URL', () => {
  const { publicKey } = generateKeyPairSync('ed25519');
  const pem = String(publicKey.export({ type: 'spki', format: 'pem' }));
  const hmac = (more: string) => `verify: {scheme: hmac-sha512, header: x-sig, ${more}}`;
  assert.deepEqual(ownRoute(hmac('key: hex'), '00ff').secrets, [Buffer.from([0, 255])]);
  assert.deepEqual(ownRoute(hmac('key: base64'), 'AP8=').secrets, [Buffer.from([0, 255])]);
  assert.match(
    only(own(hmac('key: hex'))),
    /secrets\[0\]: the secret in environment variable SECRET is not a key in hexadecimal digits/,
  );
  const [key] = ownRoute('verify: {scheme: ed25519, header: x-sig, encoding: base64}', pem).secrets;
  assert.ok(!Buffer.isBuffer(key) && key?.asymmetricKeyType === 'ed25519');
  assert.match(only(own('verify: {scheme: ecdsa-p256, header: x-sig}')), /is not a public key on the curve P-256/);
  assert.deepEqual(ownRoute('verify: {scheme: token, header: x-token}').signature, {
    scheme: 'token',
    from: { header: 'x-token' },
  });
  assert.match(
    only(own('verify: {scheme: token, header: x-token, id: x-id}')),
    /verify\.scheme: found token beside what is signed/,
  );
  assert.match(
    only(own('verify: {scheme: token, header: x-token, key: hex}')),
    /verify\.key: found hex, but token takes its secrets as they are/,
  );
  const withUrl = 'verify: {scheme: hmac-sha1, header: x-sig, signed: "{method}{url}{body}"}';
  assert.match(only(own(withUrl)), /publicUrl: found nothing/);
  assert.ok(ownRoute(`publicUrl: "https://h", ${withUrl}`).publicUrl);
});
