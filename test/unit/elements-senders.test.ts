/** What senders are known to put into one delivery, taken apart. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { Verified } from '../../src/core/delivery.ts';
import { takeApart, type Elements } from '../../src/core/elements.ts';
import { identify } from '../../src/core/identify.ts';
import { senders } from '../../src/senders/index.ts';
import { bodyOf, vectors, verified, type VerifyVector } from '../support/vectors.ts';

const delivery = (body: string | Buffer): Verified => ({ headers: [], body: Buffer.from(body) }) as unknown as Verified;

function apart(sender: string, body: string | Buffer): Elements {
  const found = takeApart(senders.get(sender)!.elements!, 'tests', 'route', delivery(body));
  if (typeof found === 'string') assert.fail(found);
  return found;
}
const refused = (sender: string, body: string) =>
  takeApart(senders.get(sender)!.elements!, 'tests', 'route', delivery(body)) as string;

/** What is left of `whole` without the events of `handled`. */
const left = (sender: string, whole: string, handled: string): string | undefined => {
  const done = new Set(apart(sender, handled).keys.map(({ id }) => id));
  const keys = apart(sender, whole).keys.map(({ id }) => id);
  return apart(sender, whole)
    .only(new Set(keys.filter((id) => !done.has(id))))
    ?.toString();
};

suite('every vector whose signature holds', () => {
  for (const name of ['sendgrid', 'hubspot', 'adyen'])
    test(name, () => {
      const sender = senders.get(name)!;
      let count = 0;
      for (const vector of vectors) {
        if (vector.kind !== 'verify' || vector.provider !== name || !vector.valid) continue;
        const key = identify(sender.identity, 'tests', 'route', delivery(bodyOf(vector)));
        const found = takeApart(sender.elements!, 'tests', 'route', delivery(bodyOf(vector)));
        assert.equal(typeof found === 'string', 'kind' in key, `${vector.id}: has a name as a whole, or has none`);
        if (typeof found === 'string' || 'kind' in key) continue;
        if (found.count === 1) assert.deepEqual(found.keys, [key]);
        count += 1;
      }
      assert.ok(count > 0);
    });
});

test('SendGrid: a list of events, one of which was handled', () => {
  const event = (id: string) => `{"email":"a@example.com","event":"open","sg_event_id":"${id}","timestamp":1767225590}`;
  const whole = `[${event('a')},\n${event('b')},\n${event('c')}]\r\n`;
  assert.equal(left('sendgrid', whole, `[${event('b')}]`), `[${event('a')},\n${event('c')}]\r\n`);
  assert.equal(refused('sendgrid', `[${event('a')},{"email":"a@example.com","event":"open"}]`), 'unnamed');
});

test('HubSpot: eventId alone is no name, and attemptNumber none of it', () => {
  const event = (subscription: number, attempt: number) =>
    `{"eventId":1,"subscriptionId":${subscription},"portalId":62515,"occurredAt":1564113600000,"attemptNumber":${attempt},"objectId":123}`;
  for (const sender of ['hubspot', 'hubspot-v3']) {
    assert.equal(apart(sender, `[${event(1, 0)},${event(2, 0)}]`).keys.length, 2);
    assert.equal(left(sender, `[${event(1, 1)},${event(2, 1)}]`, `[${event(1, 0)}]`), `[${event(2, 1)}]`);
  }
});

test('Adyen: what is left is signed, because each item is', () => {
  const vector = vectors.find(({ id }) => id === 'adyen-0757') as VerifyVector;
  const body = bodyOf(vector);
  const found = apart('adyen', body);
  assert.deepEqual([found.count, found.keys.length], [2, 2]);
  for (const { id } of found.keys) {
    const rest = found.only(new Set([id]))!;
    assert.equal((JSON.parse(rest.toString()) as { notificationItems: unknown[] }).notificationItems.length, 1);
    assert.ok(verified(senders.get('adyen')!, vector, { method: 'POST', target: '/', headers: [], body: rest }));
  }
});

test('LINE: a redelivered event is the same one', () => {
  const event = (id: string, again: boolean) =>
    `{"type":"follow","webhookEventId":"${id}","deliveryContext":{"isRedelivery":${again}}}`;
  const body = (...events: string[]) => `{"destination":"U1","events":[${events.join(',')}]}`;
  const whole = body(event('01A', true), event('01B', false));
  assert.equal(left('line', whole, body(event('01A', false))), body(event('01B', false)));
  assert.equal(refused('line', body()), 'unnamed');
});

test('Microsoft Graph: a notification without an etag leaves the delivery whole', () => {
  const one = (etag: string, more = '') =>
    `{"subscriptionId":"s","changeType":"updated","resource":"Users('u')","clientState":"x","resourceData":{"@odata.etag":"${etag}"}${more}}`;
  const body = (...all: string[]) => `{"value":[${all.join(',')}],"validationTokens":["t"]}`;
  assert.equal(left('microsoft-graph', body(one('1'), one('2')), body(one('1'))), body(one('2')));
  assert.equal(
    refused('microsoft-graph', body(one('1'), '{"subscriptionId":"s","lifecycleEvent":"missed"}')),
    'unnamed',
  );
});

suite('Meta', () => {
  const message = (id: string) =>
    `{"from":"1","id":"wamid.${id}","timestamp":"1767225600","type":"text","text":{"body":"x"}}`;
  const status = (id: string, to: string) =>
    `{"id":"wamid.${id}","status":"${to}","timestamp":"1767225601","recipient_id":"1"}`;
  const change = (members: string) =>
    `{"value":{"messaging_product":"whatsapp","metadata":{"phone_number_id":"1"},${members}},"field":"messages"}`;
  const entry = (...changes: string[]) => `{"id":"9","changes":[${changes.join(',')}]}`;
  const whatsApp = (...entries: string[]) => `{"object":"whatsapp_business_account","entry":[${entries.join(',')}]}`;
  const messages = (...ids: string[]) =>
    change(`"contacts":[{"wa_id":"1"}],"messages":[${ids.map(message).join(',')}]`);

  test('WhatsApp: messages and statuses, each by its id; a change goes with its last', () => {
    const seen = change(`"statuses":[${status('1', 'delivered')},${status('1', 'read')}]`);
    const whole = whatsApp(entry(messages('a', 'b'), seen), entry(messages('c')));
    assert.equal(apart('meta', whole).keys.length, 5);
    const handled = whatsApp(entry(messages('b', 'c')), entry(change(`"statuses":[${status('1', 'read')}]`)));
    const rest = whatsApp(entry(messages('a'), change(`"statuses":[${status('1', 'delivered')}]`)));
    assert.equal(left('meta', whole, handled), rest);
  });

  test('Messenger: messages by mid; one that is taken back comes under the same, and is another event', () => {
    const sent = (mid: string, at: number, more = '') =>
      `{"sender":{"id":"1"},"recipient":{"id":"2"},"timestamp":${at},"message":{"mid":"${mid}"${more}}}`;
    const page = (...all: string[]) =>
      `{"object":"page","entry":[{"id":"2","time":1767225600,"messaging":[${all.join(',')}]}]}`;
    const whole = page(sent('m1', 1), sent('m1', 2, ',"is_deleted":true'), sent('m2', 3));
    assert.equal(apart('meta', whole).keys.length, 3);
    assert.equal(left('meta', whole, page(sent('m1', 1), sent('m2', 3))), page(sent('m1', 2, ',"is_deleted":true')));
  });

  test('anything else leaves the delivery whole', () => {
    const feed = '{"id":"9","time":1,"changes":[{"field":"feed","value":{"item":"post","post_id":"9_1"}}]}';
    const read = '{"id":"9","messaging":[{"sender":{"id":"1"},"timestamp":1,"read":{"watermark":1}}]}';
    const standby = `{"id":"9","messaging":[{"timestamp":1,"message":{"mid":"m"}}],"standby":[{"timestamp":1}]}`;
    const errors = entry(change(`"messages":[${message('a')}],"errors":[{"code":1}]`));
    for (const odd of [feed, read, standby, errors, '{"id":"9"}'])
      assert.equal(refused('meta', whatsApp(entry(messages('a')), odd)), 'unnamed', odd);
  });
});
