/** Every published and generated vector, and the shape of the presets. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Verified } from '../../src/core/delivery.ts';
import { identify } from '../../src/core/identify.ts';
import type { Sender } from '../../src/core/sender.ts';
import { templateProblem } from '../../src/core/signed-template.ts';
import { templatesOf } from '../../src/core/verify.ts';
import { signed } from '../../src/senders/paypal.ts';
import { senders } from '../../src/senders/index.ts';
import { received, vectors, verified, type Headers, type VerifyVector } from '../support/vectors.ts';

for (const vector of vectors) {
  const sender = senders.get(vector.provider)!;
  const name = `${vector.id}: ${vector.why}`;
  if (vector.kind === 'verify') {
    test(name, () => {
      const accepted = verified(sender, vector) !== undefined;
      if (vector.either_verdict_is_safe !== true) assert.equal(accepted, vector.gateway_should_accept ?? vector.valid);
    });
  } else if (vector.kind === 'identity') {
    test(name, () => {
      const [a, b] = [vector.delivery_a, vector.delivery_b].map(({ headers, body }) => nameOf(sender, headers, body));
      // What nothing names is never a duplicate.
      assert.equal(a !== undefined && a === b, vector.same_event);
    });
  } else if (vector.kind === 'signing-input') {
    test(name, () => {
      const { 'PAYPAL-TRANSMISSION-ID': id, 'PAYPAL-TRANSMISSION-TIME': time } = vector.headers;
      const text = signed(id!, time!, Buffer.from(vector.webhook_id), Buffer.from(vector.body));
      assert.equal(text.toString(), vector.expected_signing_string);
    });
  }
}

test('every vector has its preset, and every signed preset but one has vectors', () => {
  for (const { provider } of vectors) assert.ok(senders.has(provider), provider);
  const without = [...senders.keys()].filter((name) => !vectors.some((vector) => vector.provider === name));
  assert.deepEqual(without, ['discord-events', 'hubspot-v3', 'klarna']);
});

for (const sender of senders.values()) {
  test(`${sender.name}: its preset is coherent`, () => {
    assert.match(sender.name, /^[a-z0-9-]{1,63}$/);
    assert.equal(senders.get(sender.name), sender);
    for (const texts of [sender.sources, sender.setup, sender.cautions])
      assert.ok(texts.length > 0 && !texts.includes(''));
    assert.ok(sender.title !== '' && sender.secret !== '');
    assert.ok(sender.timeLimitMs === undefined || sender.timeLimitMs >= 1000);
    assert.ok((sender.lastRetryMs ?? 0) <= sender.retryHorizonMs);
    assert.ok(sender.successStatus >= 200 && sender.successStatus <= 299);
    for (const rule of templatesOf(sender.signature)) {
      const has = {
        timestamp: rule.timestamp !== undefined && !('json' in rule.timestamp.from),
        id: rule.idHeader !== undefined,
        secret: rule.scheme === 'sha256',
      };
      assert.equal(templateProblem(rule.signed, has), undefined);
    }
  });

  test(`${sender.name}: what names an event without being signed is said, and a replay guard knows what to go by`, () => {
    const unsigned = sender.identity.parts.some((part) => part.from === 'header');
    if (unsigned) assert.ok(sender.notCovered && sender.replayedBy === 'body');
    if (sender.replayedBy === 'signed-id') assert.ok(sender.notCovered?.some((what) => /body|event-data/.test(what)));
  });

  test(`${sender.name}: a blank secret is refused`, () => {
    for (const blank of ['', ' ', '\n']) assert.equal(typeof sender.decodeSecret(blank), 'string');
  });
}

test('a secret of the wrong kind is refused, and no complaint repeats it', () => {
  const wrong: Record<string, string[]> = {
    adyen: ['not-hexadecimal', 'ABC'],
    'aws-sns': ['arn:aws:sqs:us-west-2:123456789012:MyQueue', 'MyTopic'],
    braintree: ['public|private|third', 'with blank'],
    discord: ['00ff', 'z'.repeat(64)],
    plaid: ['{"kty":"EC"}', 'client-id-only', '{'],
    sendgrid: ['MFkwEwYHKoZIzj0CAQ', 'AAAA'],
    'standard-webhooks': ['whsk_AAAA', 'whpk_AAAA', 'whsec_not base64!'],
    svix: ['whpk_AAAA', 'whsk_AAAA'],
  };
  for (const [name, texts] of Object.entries(wrong)) {
    for (const text of texts) {
      const problem = senders.get(name)!.decodeSecret(text);
      assert.ok(typeof problem === 'string', `${name}: ${text}`);
      assert.ok(!problem.includes(text));
    }
  }
});

test('a whsec_ secret is base64, and no complaint repeats it', () => {
  const decode = senders.get('svix')!.decodeSecret;
  const key = Buffer.from('a key of some bytes, not secret');
  const base64 = key.toString('base64');
  assert.ok(base64.endsWith('='));
  for (const text of [`whsec_${base64}`, base64, `whsec_${base64.replace(/=+$/, '')}`])
    assert.deepEqual(decode(text), key);
  const twice = Buffer.from(`whsec_${base64}`).toString('base64');
  for (const text of ['whsec_', 'whsec_not base64!', `whsec_${base64} `, 'whsec_ab-_', twice, `whsec_${twice}`]) {
    const problem = decode(text);
    assert.ok(typeof problem === 'string', text);
    assert.ok(!problem.includes(base64) && !problem.includes(twice));
  }
});

test('B13: an id that no signature covers can be replaced: a fresh one is a new event, unless the body names it', () => {
  const github = senders.get('github')!;
  const named = ['original', 'new-1', 'new-2'].map((id) => nameOf(github, { 'X-GitHub-Delivery': id }, '{"a":1}'));
  assert.equal(new Set(named).size, 3);
  const byBody: Sender = { ...github, identity: { ...github.identity, parts: [], bodyHash: true } };
  assert.equal(
    new Set(['original', 'new-1'].map((id) => nameOf(byBody, { 'X-GitHub-Delivery': id }, '{"a":1}'))).size,
    1,
  );
  assert.ok(github.cautions.some((caution) => caution.includes('replay')));
});

test('WooCommerce: a secret is the same whether its entities are decoded or not', () => {
  const decode = senders.get('woocommerce')!.decodeSecret;
  const plain = `a&b<c>d"e'f`;
  for (const text of [plain, 'a&amp;b&lt;c&gt;d&quot;e&#039;f', 'a&#038;b&#x3C;c&#62;d&#x22;e&#x27;f'])
    assert.deepEqual(decode(text), Buffer.from(plain));
  assert.deepEqual(decode('&amp;lt; &nbsp; &amp'), Buffer.from('&lt; &nbsp; &amp'), 'once, and only these');
});

test('an id beside the signed family of headers does not name the event', () => {
  const svix = senders.get('svix')!;
  const vector = vectors.find(({ id }) => id === 'svix-0843') as VerifyVector;
  const whiteLabel = Object.fromEntries(
    Object.entries(vector.headers).map(([name, value]) => [name.replace('svix-', 'webhook-'), value]),
  );
  const named = [whiteLabel, { ...whiteLabel, 'svix-id': 'msg_other' }].map((headers) => {
    const delivery = verified(svix, { ...vector, headers });
    assert.ok(delivery);
    return identify(svix.identity, 's', 'r', delivery);
  });
  assert.deepEqual(named[0], named[1]);
});

test('HubSpot: a signature without a timestamp does not satisfy the preset that wants one', () => {
  const old = vectors.filter(
    (vector): vector is VerifyVector => vector.id === 'hubspot-0693' || vector.id === 'hubspot-0892',
  );
  assert.equal(old.length, 2);
  for (const vector of old) {
    assert.ok(verified(senders.get('hubspot')!, vector));
    assert.equal(verified(senders.get('hubspot-v3')!, vector), undefined);
    // Where there is a signature of version 3, an older one does not make it good.
    const both = {
      ...vector.headers,
      'X-HubSpot-Signature-v3': 'AAAA',
      'X-HubSpot-Request-Timestamp': '1767225600000',
    };
    assert.equal(
      verified(senders.get('hubspot')!, { ...vector, headers: both, url: 'https://example.com/' }),
      undefined,
    );
  }
});

test('SNS: a message that Amazon signed for another topic is refused', () => {
  const vector = vectors.find(({ id }) => id === 'aws-sns-0815') as VerifyVector;
  const sns = senders.get('aws-sns')!;
  const others: Sender = { ...sns, decodeSecret: () => Buffer.from('arn:aws:sns:us-west-2:210987654321:MyTopic') };
  assert.ok(verified(sns, vector));
  assert.equal(verified(others, vector), undefined);
});

test('LINE, Graph: a delivery that nothing names is not one with another', () => {
  assert.equal(nameOf(senders.get('line')!, {}, '{"events":[]}'), undefined);
  const graph = (etag: string) =>
    `{"value":[{"subscriptionId":"s","changeType":"updated","resource":"r","resourceData":{"@odata.etag":${etag}}}]}`;
  const named = ['"a"', '"b"', '"a"'].map((etag) => nameOf(senders.get('microsoft-graph')!, {}, graph(etag)));
  assert.ok(named[0] !== undefined && named[0] !== named[1] && named[0] === named[2]);
  assert.equal(nameOf(senders.get('microsoft-graph')!, {}, graph('null')), undefined);
});

test('Graph: without an etag a notification is named by its own id, in every element or not at all', () => {
  const graph = (...ids: string[]) =>
    JSON.stringify({ value: ids.map((id) => ({ subscriptionId: 's', changeType: 'created', resource: 'r', id })) });
  const name = (...ids: string[]) => nameOf(senders.get('microsoft-graph')!, {}, graph(...ids));
  const both = name('n1', 'n2');
  assert.ok(both !== undefined);
  assert.equal(name('n1', 'n2'), both);
  assert.notEqual(name('n1'), name('n2'));
  assert.equal(name('n1', ''), undefined);
});

test('Twilio: an event is named by its token, else by what happened to its message or call', () => {
  const twilio = senders.get('twilio')!;
  const names = [
    nameOf(twilio, {}, 'MessageSid=SM1&MessageStatus=sent'),
    nameOf(twilio, {}, 'MessageSid=SM1&MessageStatus=delivered'),
    nameOf(twilio, {}, 'CallSid=CA1&CallStatus=ringing&SequenceNumber=1'),
    nameOf(twilio, { 'I-Twilio-Idempotency-Token': 't' }, 'CallSid=CA1&CallStatus=ringing&SequenceNumber=1'),
  ];
  assert.ok(!names.includes(undefined));
  assert.equal(new Set(names).size, 4);
  assert.equal(nameOf(twilio, {}, 'CallSid=CA1&CallStatus=in-progress&Digits=1'), undefined, 'a call goes on');
});

/** As `identify` would name it once its signature has held; undefined without an identity. */
function nameOf(sender: Sender, headers: Headers, body: string): string | undefined {
  const [rule] = templatesOf(sender.signature);
  const signedId = rule?.idHeader === undefined ? undefined : String(headers[rule.idHeader]);
  const delivery = { ...received(headers, body), signedId } as Verified;
  const key = identify(sender.identity, 'service', 'route', delivery);
  return 'kind' in key ? undefined : key.id;
}
