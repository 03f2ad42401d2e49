/** How senders make sure of an endpoint: what they ask, what the gateway answers, and what it does not give away. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { suite, test } from 'node:test';
import { header, type Outcome, type Received } from '../../src/core/delivery.ts';
import { senders } from '../../src/senders/index.ts';
import { routeOf, startGate } from '../support/gate.ts';
import {
  deliveryOf,
  received,
  secretTexts,
  vectors,
  type HandshakeVector,
  type VerifyVector,
} from '../support/vectors.ts';

const now = 1_767_225_600;

suite('published and generated handshakes', () => {
  for (const vector of vectors) {
    if (vector.kind !== 'handshake') continue;
    test(`${vector.id}: ${vector.why}`, () => {
      const sender = senders.get(vector.provider)!;
      const secret = vector.provider === 'braintree' ? `integration_public_key|${vector.secret}` : vector.secret;
      const secrets = secret === null ? [] : [sender.decodeSecret(secret) as Buffer];
      const asked = sender.handshake!.answer(deliveryOfHandshake(vector), { secrets, token: undefined });
      assert.ok(asked);
      const { status, headers, body } = asked.answer;
      const wanted = vector.expected_response;
      assert.equal(status, wanted.status);
      if (wanted.body !== undefined) assert.equal(body.toString(), wanted.body);
      if (wanted.content_type !== undefined)
        assert.equal(header(headers, 'content-type')!.split(';')[0], wanted.content_type);
      for (const [name, value] of Object.entries(wanted.headers ?? {})) assert.equal(header(headers, name), value);
      if (body.length > 0) assert.equal(header(headers, 'x-content-type-options'), 'nosniff');
      assert.ok(
        sender.handshake!.when === 'signed' || vector.method === 'POST' || sender.handshake!.methods.includes('GET'),
      );
    });
  }
});

suite('on a route', () => {
  test('a signed handshake is answered after its signature, and is no event', async () => {
    const vector = vectors.find(({ id }) => id === 'zoom-0916') as HandshakeVector;
    const gate = startGate(now);
    const route = routeOf(senders.get('zoom')!, ['an older secret', vector.secret!]);
    const outcome = await gate.handle(route, deliveryOfHandshake(vector));
    assert.equal(answered(outcome).body.toString(), vector.expected_response.body, 'with the secret that signed it');
    const forged = { ...deliveryOfHandshake(vector), body: Buffer.from(vector.body.replace('qgg8', 'qgg9')) };
    assert.equal((await gate.handle(route, forged)).kind, 'rejected');
    assert.deepEqual([gate.claims.calls, gate.upstream.requests], [[], []]);
  });

  test('Slack: a challenge is echoed; an event that looks a little like one goes on', async () => {
    const slack = senders.get('slack')!;
    const gate = startGate(now);
    const send = async (body: string) => {
      const signature = createHmac('sha256', 'secret').update(`v0:${now}:${body}`).digest('hex');
      const headers = { 'X-Slack-Request-Timestamp': String(now), 'X-Slack-Signature': `v0=${signature}` };
      return await gate.handle(routeOf(slack, ['secret']), received(headers, body));
    };
    assert.equal(
      answered(await send('{"type":"url_verification","challenge":"<b>c</b>"}')).body.toString(),
      '<b>c</b>',
    );
    for (const body of [
      '{"type":"event_callback","challenge":"c","event_id":"Ev1"}',
      '{"type":"url_verification","event_id":"Ev2"}',
    ])
      assert.equal((await send(body)).kind, 'delivered', body);
    assert.equal(gate.upstream.requests.length, 2);
  });

  test('Discord: wrong signatures are refused before any PING is answered', async () => {
    const discord = senders.get('discord')!;
    const ping = vectors.find(({ id }) => id === 'discord-0735') as VerifyVector;
    const wrong = vectors.find(({ id }) => id === 'discord-0745') as VerifyVector;
    const gate = startGate(now);
    const route = routeOf(discord, secretTexts(ping));
    assert.equal(answered(await gate.handle(route, deliveryOf(ping))).body.toString(), '{"type":1}');
    const refused = await gate.handle(route, deliveryOf(wrong));
    assert.equal(refused.kind === 'rejected' && refused.reason, 'bad_signature');
  });

  test('Discord: an event, which has the type of a PING of interactions, is no PING', () => {
    const { handshake } = senders.get('discord-events')!;
    const event = received({}, '{"version":1,"application_id":"1","type":1,"event":{"type":"APPLICATION_AUTHORIZED"}}');
    assert.equal(handshake!.answer(event, { secrets: [], token: undefined }), undefined);
  });

  test('Meta: the verify token is the one for it, or else one of the secrets; a wrong one gets 403 and no echo', async () => {
    const meta = senders.get('meta')!;
    const ask = async (token: string, change = {}) =>
      answered(
        await startGate().handle(
          routeOf(meta, ['app-secret'], change),
          get(`/hook?hub.mode=subscribe&hub.challenge=42&hub.verify_token=${token}`),
        ),
      );
    assert.equal((await ask('app-secret')).body.toString(), '42');
    const own = { handshakeToken: Buffer.from('own') };
    assert.equal((await ask('own', own)).body.toString(), '42');
    for (const refused of [await ask('app-secret', own), await ask('', own), await ask('wrong')])
      assert.deepEqual([refused.status, refused.body.toString()], [403, '']);
  });

  test('a GET that asks nothing is refused, whoever the sender is, and goes no further', async () => {
    for (const sender of senders.values()) {
      if (!sender.handshake?.methods.includes('GET') || sender.name === 'mailgun-optimize-alerts') continue;
      const gate = startGate();
      const outcome = await gate.handle(routeOf(sender, [secretFor(sender.name)]), get('/hook?a=1'));
      assert.equal(outcome.kind === 'rejected' && outcome.reason, 'bad_request', sender.name);
      assert.deepEqual([gate.claims.calls, gate.upstream.requests], [[], []]);
    }
  });

  test('X, Braintree: nothing that could be the body of an event is signed for whoever asks', async () => {
    const ask = async (name: string, parameter: string, text: string) =>
      await startGate().handle(
        routeOf(senders.get(name)!, [secretFor(name)]),
        get(`/hook?${parameter}=${encodeURIComponent(text)}`),
      );
    for (const text of ['{"a":1}', '[]', '"a"', '', 'a b', 'a'.repeat(300)])
      assert.equal((await ask('twitter-x', 'crc_token', text)).kind, 'rejected', text);
    for (const text of ['PG5v', 'a'.repeat(33), 'A'.repeat(24), 'abc'])
      assert.equal((await ask('braintree', 'bt_challenge', text)).kind, 'rejected', text);
    assert.equal((await ask('twitter-x', 'crc_token', 'a-b_c==')).kind, 'handshake');
  });

  test('Braintree: without the public key the challenge cannot be answered', async () => {
    const challenge = get('/hook?bt_challenge=20f9f8ed05f77439fe955c977e4c8a53');
    assert.equal(
      (await startGate().handle(routeOf(senders.get('braintree')!, ['private']), challenge)).kind,
      'rejected',
    );
  });

  test('Microsoft Graph: the token is echoed before any notification is trusted', async () => {
    const graph = senders.get('microsoft-graph')!;
    const gate = startGate();
    const asked = await gate.handle(routeOf(graph, ['s']), received({}, '', 'POST', '/hook?validationToken=a%20b%3Cc'));
    assert.equal(answered(asked).body.toString(), 'a b<c');
    assert.equal((await gate.handle(routeOf(graph, ['s']), received({}, '{"value":[]}'))).kind, 'rejected');
  });

  test('Notion: a token is never taken by itself; it is told of, and shown only where the route says so', async () => {
    const notion = senders.get('notion')!;
    const vector = vectors.find(({ id }) => id === 'notion-0921') as HandshakeVector;
    const token = (JSON.parse(vector.body) as { verification_token: string }).verification_token;
    const told = async (secret: string, change = {}) => {
      const gate = startGate();
      const outcome = await gate.handle(routeOf(notion, [secret], change), deliveryOfHandshake(vector));
      assert.equal(answered(outcome).status, 200);
      return JSON.stringify(gate.events.of('warn'));
    };
    const silent = await told('another');
    assert.match(silent, /verification token/);
    assert.ok(!silent.includes(token));
    assert.ok((await told('another', { handshakeReveal: true })).includes(token));
    assert.equal(await told(token), '[]');
    const garbled = { ...deliveryOfHandshake(vector), body: Buffer.from(vector.body.replace(token, `${token}x`)) };
    assert.equal((await startGate().handle(routeOf(notion, ['another']), garbled)).kind, 'rejected');
  });

  test('SNS: a subscription is confirmed once its signature and its addresses hold, and only by a visit that succeeds', async () => {
    const vector = vectors.find(({ id }) => id === 'aws-sns-0823') as VerifyVector;
    const route = routeOf(senders.get('aws-sns')!, secretTexts(vector));
    const body = JSON.parse(vector.body!) as { SigningCertURL: string; SubscribeURL: string };
    const gate = startGate(now);
    assert.equal((await gate.handle(route, deliveryOf(vector))).kind, 'unavailable', 'without the certificate');
    gate.keys.published.set(body.SigningCertURL, vector.cert_pem!);
    gate.keys.answers = false;
    assert.equal((await gate.handle(route, deliveryOf(vector))).kind, 'unavailable', 'SNS sends it again');
    gate.keys.answers = true;
    assert.equal(answered(await gate.handle(route, deliveryOf(vector))).status, 200);
    assert.deepEqual(gate.keys.visited, [body.SubscribeURL, body.SubscribeURL]);
    const others = routeOf(senders.get('aws-sns')!, ['arn:aws:sns:us-west-2:123456789012:Other']);
    assert.equal((await gate.handle(others, deliveryOf(vector))).kind, 'rejected');
    assert.equal(gate.keys.visited.length, 2);
    assert.deepEqual([gate.claims.calls, gate.upstream.requests], [[], []]);
  });

  test('SNS: no address but Amazon’s is visited', () => {
    const { handshake } = senders.get('aws-sns')!;
    const wrong = [
      'http://sns.us-west-2.amazonaws.com/?Action=ConfirmSubscription',
      'http://169.254.169.254/latest/meta-data/',
      'https://evil.example/?sns.us-west-2.amazonaws.com',
      'https://sns.us-west-2.amazonaws.com.evil.example/?a',
      'https://sns.us-west-2.amazonaws.com@evil.example/?a',
      'https://sns.us-west-2.amazonaws.com:444/?a',
      'https://sns.us-west-2.amazonaws.com/x?a',
      'https://evil.amazonaws.com/?a',
      'https://sns.us-west-2.amazonaws.com/?a\r\nHost: b',
    ];
    for (const url of wrong) {
      const asked = received({}, JSON.stringify({ Type: 'SubscriptionConfirmation', SubscribeURL: url }));
      const greeting = handshake!.answer(asked, { secrets: [], token: undefined });
      assert.deepEqual([greeting?.answer.status, greeting?.visit], [400, undefined], url);
    }
  });
});

function secretFor(name: string): string {
  return name === 'braintree' ? 'public|private' : 'a secret';
}

function answered(outcome: Outcome) {
  return outcome.kind === 'handshake' ? outcome.answer : assert.fail(`it was ${outcome.kind}`);
}

const get = (target: string): Received => received({}, '', 'GET', target);

function deliveryOfHandshake(vector: HandshakeVector): Received {
  return received(vector.headers, vector.body, vector.method, vector.url);
}
