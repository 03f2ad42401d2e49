/** The ways of senders, seen from outside: handshakes, signed URLs, replays, deliveries that nothing names. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { after, before, test } from 'node:test';
import { systemClock } from '../../src/clock.ts';
import { header } from '../../src/core/delivery.ts';
import { exchange } from '../../src/demo/exchange.ts';
import { startCluster, type Cluster } from '../support/cluster.ts';
import { secrets } from '../support/config.ts';
import { github, outcome } from '../support/deliveries.ts';

const key = { secrets: [{ file: './github.secret' }] };
const routes = [
  { name: 'github', path: '/github', sender: 'github', replayGuard: '1h', ...key },
  { name: 'unguarded', path: '/unguarded', sender: 'github', ...key },
  { name: 'meta', path: '/meta', sender: 'meta', handshake: { token: { file: './custom.secret' } }, ...key },
  { name: 'slack', path: '/slack', sender: 'slack', ...key },
  { name: 'twilio', path: '/hooks/tw', sender: 'twilio', publicUrl: 'https://pub.example/hooks/tw', ...key },
  { name: 'lenient', path: '/lenient', sender: 'github', identity: { missing: 'forward' }, ...key },
];

let cluster: Cluster;
before(async () => void (cluster = await startCluster({ nodes: 1, gateways: 1, settings: { routes } })));
after(async () => await cluster[Symbol.asyncDispose]());

const hex = (text: string) => createHmac('sha256', secrets.github).update(text).digest('hex');

test('B13: with the guard a captured delivery goes through once, and the rest is marked and counted', async () => {
  for (const id of ['B13', 'B13-1', 'B13-2', 'B13-3', 'B13-4', 'B13-5']) {
    const reply = await cluster.post(0, '/github', github(id, '{"B13":1}'));
    const marks = [reply.status, outcome(reply), header(reply.headers, 'hookonce-replay')];
    assert.deepEqual(marks, id === 'B13' ? [200, undefined, undefined] : [200, 'duplicate', 'true']);
    assert.equal(cluster.application.of(id).length, id === 'B13' ? 1 : 0);
  }
  const again = await cluster.post(0, '/github', github('B13', '{"B13":1}'));
  assert.deepEqual([outcome(again), header(again.headers, 'hookonce-replay')], ['duplicate', undefined]);
  assert.equal(await cluster.metric('hookonce_replays_blocked_total', { route: 'github' }), 5);
  for (const id of ['open-1', 'open-2']) await cluster.post(0, '/unguarded', github(id, '{"B13":1}'));
  assert.equal(cluster.application.of('open-2').length, 1, 'without the guard it is a new event');
});

test('Meta: the challenge is answered to a GET, by its token alone, and never as a page', async () => {
  const get = async (token: string) =>
    await exchange(
      `${cluster.gateways[0]!.url}/meta?hub.mode=subscribe&hub.verify_token=${token}&hub.challenge=%3Cb%3E1`,
      { method: 'GET', headers: [], body: Buffer.alloc(0) },
    );
  const reply = await get(secrets.custom);
  assert.deepEqual([reply.status, reply.body.toString(), outcome(reply)], [200, '<b>1', 'handshake']);
  assert.match(header(reply.headers, 'content-type')!, /^text\/plain/);
  assert.equal(header(reply.headers, 'x-content-type-options'), 'nosniff');
  const refused = await get('wrong');
  assert.deepEqual([refused.status, refused.body.length], [403, 0]);
});

test('Slack: the signed challenge is echoed, and is no event', async () => {
  const time = String(Math.floor(systemClock.wall() / 1000));
  const body = '{"type":"url_verification","challenge":"c-1"}';
  const headers = ['X-Slack-Request-Timestamp', time, 'X-Slack-Signature', `v0=${hex(`v0:${time}:${body}`)}`];
  const reply = await cluster.post(0, '/slack', { headers, body: Buffer.from(body) });
  assert.deepEqual([reply.status, reply.body.toString(), outcome(reply)], [200, 'c-1', 'handshake']);
  const unsigned = await cluster.post(0, '/slack', { headers: [], body: Buffer.from(body) });
  assert.equal(unsigned.status, 401);
  assert.equal(await cluster.metric('hookonce_deliveries_total', { route: 'slack', outcome: 'handshake' }), 1);
});

test('B42: a signature over the public URL holds behind a proxy that ends TLS, whatever forwarded headers say', async () => {
  const sign = (url: string) => createHmac('sha1', secrets.github).update(`${url}From+1SidB42`).digest('base64');
  const send = async (signed: string, headers: string[]) =>
    (
      await cluster.post(0, '/hooks/tw?x=1', {
        headers: ['Content-Type', 'application/x-www-form-urlencoded', 'X-Twilio-Signature', sign(signed), ...headers],
        body: Buffer.from('Sid=B42&From=%2B1'),
      })
    ).status;
  const ends = ['X-Forwarded-Proto', 'https', 'X-Forwarded-Host', 'pub.example'];
  assert.equal(await send('https://pub.example/hooks/tw?x=1', ends), 200);
  assert.equal(await send('https://pub.example/hooks/tw?x=1', ['X-Forwarded-Host', 'evil.test']), 200);
  assert.equal(await send('https://evil.test/hooks/tw?x=1', ['X-Forwarded-Host', 'evil.test']), 401);
  assert.equal(await send('http://pub.example/hooks/tw?x=1', ends), 401);
});

test('B12: deliveries that nothing names are refused, or forwarded each, and counted', async () => {
  const body = '{"B12":1}';
  const unnamed = { headers: ['X-Hub-Signature-256', `sha256=${hex(body)}`], body: Buffer.from(body) };
  assert.equal((await cluster.post(0, '/unguarded', unnamed)).status, 400);
  for (let i = 0; i < 2; i += 1) assert.equal((await cluster.post(0, '/lenient', unnamed)).status, 200);
  const forwarded = cluster.application.visits.filter((visit) => Buffer.from(visit.body).toString() === body);
  assert.deepEqual(
    forwarded.map((visit) => header(visit.headers, 'hookonce-claim')),
    ['none', 'none'],
  );
  for (const [route, count] of [
    ['unguarded', 1],
    ['lenient', 2],
    ['github', 0],
  ] as const)
    assert.equal(await cluster.metric('hookonce_identity_missing_total', { route }), count);
});
