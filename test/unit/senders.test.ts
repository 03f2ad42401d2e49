/** Every published and generated vector of the senders we have, and the shape of their presets. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { header, type Received } from '../../src/core/delivery.ts';
import { identify } from '../../src/core/identify.ts';
import type { Sender } from '../../src/core/sender.ts';
import { templateProblem } from '../../src/core/signed-template.ts';
import { verify } from '../../src/core/verify.ts';
import { senders } from '../../src/senders/index.ts';

type Headers = Record<string, string | string[]>;
interface VerifyVector {
  kind: 'verify';
  id: string;
  provider: string;
  why: string;
  valid: boolean;
  gateway_should_accept?: boolean;
  either_verdict_is_safe?: boolean;
  secret: string | string[] | null;
  public_key?: string;
  headers: Headers;
  body?: string | null;
  body_base64?: string;
  body_recipe?: { prefix: string; repeat: string; times: number; suffix: string; sha256: string };
  /** Epoch seconds; null: the time does not matter. */
  now: number | null;
}
interface IdentityVector {
  kind: 'identity';
  id: string;
  provider: string;
  why: string;
  delivery_a: { headers: Headers; body: string };
  delivery_b: { headers: Headers; body: string };
  same_event: boolean;
}

const vectors = (
  JSON.parse(readFileSync(new URL('../fixtures/provider-vectors.json', import.meta.url), 'utf8')) as (
    | VerifyVector
    | IdentityVector
  )[]
).flatMap((vector) => (senders.has(vector.provider) ? [{ vector, sender: senders.get(vector.provider)! }] : []));

for (const { vector, sender } of vectors) {
  if (vector.kind === 'verify' && vector.public_key === undefined) {
    test(`${vector.id}: ${vector.why}`, () => {
      const right = vector.gateway_should_accept ?? vector.valid;
      const accepted = accepts(sender, vector);
      if (vector.either_verdict_is_safe !== true) assert.equal(accepted, right);
    });
  } else if (vector.kind === 'verify') {
    test(`${vector.id}: an asymmetric key is refused before any delivery: ${vector.why}`, () => {
      assert.match(String(sender.decodeSecret(vector.public_key!)), /asymmetric/);
    });
  } else if (vector.kind === 'identity') {
    test(`${vector.id}: ${vector.why}`, () => {
      const [a, b] = [vector.delivery_a, vector.delivery_b].map(({ headers, body }) =>
        nameOf(sender, headers, Buffer.from(body)),
      );
      assert.equal(a === b, vector.same_event);
    });
  }
}

test('there are vectors of every sender', () => {
  for (const name of senders.keys())
    assert.ok(vectors.filter(({ vector }) => vector.provider === name).length > 10, name);
});

for (const sender of senders.values()) {
  test(`${sender.name}: its preset is coherent`, () => {
    assert.match(sender.name, /^[a-z0-9-]{1,63}$/);
    assert.equal(senders.get(sender.name), sender);
    assert.ok(sender.sources.length > 0 && sender.title !== '');
    assert.ok(sender.timeLimitMs === undefined || sender.timeLimitMs >= 1000);
    assert.ok((sender.lastRetryMs ?? 0) <= sender.retryHorizonMs);
    assert.ok(sender.identity.parts.some((part) => part.from !== 'json' || part.optional !== true));
    if (sender.signature.scheme === 'none') return;
    for (const rule of sender.signature.scheme === 'first-of' ? sender.signature.rules : [sender.signature]) {
      assert.equal(
        templateProblem(rule.signed, { timestamp: rule.timestamp !== undefined, id: rule.idHeader !== undefined }),
        undefined,
      );
      if (sender.identity.parts.some((part) => part.from === 'signed-id')) assert.notEqual(rule.idHeader, undefined);
    }
  });

  test(`${sender.name}: a blank secret is refused`, () => {
    for (const blank of ['', ' ', '\n']) assert.equal(typeof sender.decodeSecret(blank), 'string');
  });
}

test('a whsec_ secret is base64, and no complaint repeats it', () => {
  const decode = senders.get('svix')!.decodeSecret;
  const key = Buffer.from('a key of some bytes, not secret');
  const base64 = key.toString('base64');
  assert.ok(base64.endsWith('='));
  for (const text of [`whsec_${base64}`, base64, `whsec_${base64.replace(/=+$/, '')}`])
    assert.deepEqual(decode(text), key);
  const twice = Buffer.from(`whsec_${base64}`).toString('base64');
  for (const text of [
    'whsec_',
    'whsec_not base64!',
    `whsec_${base64} `,
    'whsec_ab-_',
    twice,
    `whsec_${twice}`,
    'whpk_AAAA',
    'whsk_AAAA',
  ]) {
    const problem = decode(text);
    assert.ok(typeof problem === 'string', text);
    assert.ok(!problem.includes(base64) && !problem.includes(twice));
  }
});

test('B13: an id that no signature covers can be replaced: a fresh one is a new event, unless the body names it', () => {
  const github = senders.get('github')!;
  const body = Buffer.from('{"a":1}');
  const named = ['original', 'new-1', 'new-2'].map((id) => nameOf(github, { 'X-GitHub-Delivery': id }, body));
  assert.equal(new Set(named).size, 3);
  const byBody: Sender = { ...github, identity: { ...github.identity, parts: [], bodyHash: true } };
  assert.equal(new Set(['original', 'new-1'].map((id) => nameOf(byBody, { 'X-GitHub-Delivery': id }, body))).size, 1);
  assert.ok(github.cautions.some((caution) => caution.includes('replay')));
});

test('an id beside the signed family of headers does not name the event', () => {
  const svix = senders.get('svix')!;
  const vector = vectors.find(({ vector: { id } }) => id === 'svix-0843')!.vector as VerifyVector;
  const body = Buffer.from(vector.body!);
  const whiteLabel = Object.fromEntries(
    Object.entries(vector.headers).map(([name, value]) => [name.replace('svix-', 'webhook-'), value]),
  );
  const named = [whiteLabel, { ...whiteLabel, 'svix-id': 'msg_other' }].map((headers) => {
    const verified = verify(svix.signature, keys(svix, vector.secret), received(headers, body), vector.now! * 1000);
    assert.ok(!('kind' in verified));
    return identify(svix.identity, 's', 'r', verified);
  });
  assert.deepEqual(named[0], named[1]);
});

function accepts(sender: Sender, vector: VerifyVector): boolean {
  const secrets = [vector.secret ?? []].flat().map((text) => sender.decodeSecret(text));
  // The gateway does not start with a secret that cannot be one.
  if (secrets.some((secret) => typeof secret === 'string')) return false;
  const verdict = verify(
    sender.signature,
    secrets as Buffer[],
    received(vector.headers, bodyOf(vector)),
    (vector.now ?? 0) * 1000,
  );
  return !('kind' in verdict);
}

function bodyOf(vector: VerifyVector): Buffer {
  if (typeof vector.body === 'string') return Buffer.from(vector.body);
  if (vector.body_base64 !== undefined) return Buffer.from(vector.body_base64, 'base64');
  const { prefix, repeat, times, suffix, sha256 } = vector.body_recipe!;
  const body = Buffer.from(prefix + repeat.repeat(times) + suffix);
  assert.equal(createHash('sha256').update(body).digest('hex'), sha256);
  return body;
}

function received(headers: Headers, body: Buffer): Received {
  const lines = Object.entries(headers).flatMap(([name, value]) => [value].flat().flatMap((line) => [name, line]));
  return { method: 'POST', target: '/hook', headers: lines, body };
}

const keys = (sender: Sender, secret: string | string[] | null): Buffer[] =>
  [secret ?? []].flat().map((text) => sender.decodeSecret(text) as Buffer);

/** As `identify` would name it once its signature has held. */
function nameOf(sender: Sender, headers: Headers, body: Buffer): string {
  const delivery = received(headers, body);
  const rule = sender.signature.scheme === 'first-of' ? sender.signature.rules[0] : sender.signature;
  const signedId =
    'idHeader' in rule && rule.idHeader !== undefined ? header(delivery.headers, rule.idHeader) : undefined;
  const verified = verify({ scheme: 'none' }, [], { ...delivery, signedId } as Received, 0);
  assert.ok(!('kind' in verified));
  const key = identify(sender.identity, 'service', 'route', verified);
  assert.ok(!('kind' in key), 'kind' in key ? key.message : '');
  return key.id;
}
