import assert from 'node:assert/strict';
import { test } from 'node:test';
import { header, type Done, type Outcome, type RejectReason } from '../../src/core/delivery.ts';
import { answer, type AnswerRoute } from '../../src/http/answer.ts';

const route: AnswerRoute = {
  successStatus: 200,
  duplicateReply: 'empty',
  inFlight: { policy: 'wait', waitMs: 4_000, maxWaiters: 32 },
};
const done: Done = { status: 201, wallMs: 0, traceId: '', reply: undefined };

function rejected(reason: RejectReason): Outcome {
  return { kind: 'rejected', reason, message: `because of ${reason}` };
}

/** The table of docs/answers.md: outcome, status, whole Retry-After. */
const table: [Outcome, number, string?][] = [
  [{ kind: 'duplicate', done }, 200],
  [{ kind: 'in-progress', retryAfterMs: 0 }, 503, '1'],
  [{ kind: 'in-progress', retryAfterMs: 1_001 }, 503, '2'],
  [{ kind: 'in-progress', retryAfterMs: 3_600_000 }, 503, '30'],
  [{ kind: 'in-progress', retryAfterMs: -5 }, 503, '1'],
  [rejected('bad_signature'), 401],
  [rejected('missing_signature'), 401],
  [rejected('stale_signature'), 401],
  [rejected('no_identity'), 400],
  [rejected('bad_request'), 400],
  [rejected('too_large'), 413],
  [rejected('unsupported_coding'), 415],
  [{ kind: 'unreachable', message: 'connect ECONNREFUSED 10.0.0.9:8080', attempt: 1 }, 502],
  [{ kind: 'uncertain', how: 'timeout', attempt: 1 }, 504],
  [{ kind: 'uncertain', how: 'reset', attempt: 1 }, 502],
  [{ kind: 'unavailable' }, 503, '1'],
  [{ kind: 'overloaded', limit: 'memory' }, 503, '1'],
];

for (const [outcome, status, retryAfter] of table) {
  test(`${JSON.stringify(outcome)} is answered ${status} and says so`, () => {
    const given = answer(outcome, route);
    assert.equal(given.status, status);
    assert.equal(header(given.headers, 'hookonce-outcome'), outcome.kind);
    assert.equal(header(given.headers, 'retry-after'), retryAfter);
    assert.equal(header(given.headers, 'content-type'), 'application/json');
    assert.equal(header(given.headers, 'content-length'), String(given.body.length));
    const said = JSON.parse(given.body.toString()) as { outcome: string; message: string };
    assert.equal(said.outcome, outcome.kind);
    assert.ok(said.message.length > 0);
    assert.doesNotMatch(given.body.toString(), /10\.0\.0\.9|ECONN/);
  });
}

test('in progress under the policy accept is answered as success', () => {
  const accept: AnswerRoute = { ...route, successStatus: 202, inFlight: { ...route.inFlight, policy: 'accept' } };
  const given = answer({ kind: 'in-progress', retryAfterMs: 9_000 }, accept);
  assert.equal(given.status, 202);
  assert.equal(header(given.headers, 'hookonce-outcome'), 'in-progress');
  assert.equal(header(given.headers, 'retry-after'), undefined);
});

test('a duplicate is answered with the code that its sender requires, 204 without a body', () => {
  const given = answer({ kind: 'duplicate', done }, { ...route, successStatus: 204 });
  assert.deepEqual(given, { status: 204, headers: ['Hookonce-Outcome', 'duplicate'], body: Buffer.alloc(0) });
});

test('a copy of an event that a 410 completed is answered 410', () => {
  assert.equal(answer({ kind: 'duplicate', done: { ...done, status: 410 } }, route).status, 410);
});

test('a stored reply is replayed: status, content type and body, nothing else', () => {
  const reply = { contentType: 'text/xml', body: Buffer.from('<Response/>') };
  const given = answer({ kind: 'duplicate', done: { ...done, reply } }, { ...route, duplicateReply: 'stored' });
  assert.deepEqual(given, {
    status: 201,
    headers: ['Hookonce-Outcome', 'duplicate', 'Content-Type', 'text/xml', 'Content-Length', '11'],
    body: reply.body,
  });
});

test('a stored reply without content is replayed without length', () => {
  const reply = { contentType: 'text/plain', body: Buffer.alloc(0) };
  const outcome: Outcome = { kind: 'duplicate', done: { ...done, status: 204, reply } };
  const given = answer(outcome, { ...route, duplicateReply: 'stored' });
  assert.deepEqual(given, { status: 204, headers: ['Hookonce-Outcome', 'duplicate'], body: Buffer.alloc(0) });
});

test('a reply that was too large to store is marked as omitted', () => {
  const outcome: Outcome = { kind: 'duplicate', done: { ...done, reply: 'omitted' } };
  const given = answer(outcome, { ...route, duplicateReply: 'stored' });
  assert.equal(given.status, 200);
  assert.equal(header(given.headers, 'hookonce-reply'), 'omitted');
  assert.equal(header(given.headers, 'hookonce-outcome'), 'duplicate');
});

test('a route that does not replay ignores what another version of it stored', () => {
  const reply = { contentType: 'text/xml', body: Buffer.from('<Response/>') };
  const given = answer({ kind: 'duplicate', done: { ...done, reply } }, route);
  assert.equal(header(given.headers, 'content-type'), 'application/json');
});

for (const kind of ['delivered', 'refused'] as const) {
  test(`${kind}: the application’s reply as it is`, () => {
    const reply = { status: 422, headers: ['x-A', '1', 'Content-Length', '2', 'X-a', '2'], body: Buffer.from('no') };
    assert.deepEqual(answer({ kind, reply, attempt: 1 }, route), reply);
  });
}

test('a reply without a stated length gets one', () => {
  const reply = { status: 200, headers: ['X', '1'], body: Buffer.from('abc') };
  assert.deepEqual(answer({ kind: 'delivered', reply, attempt: 1 }, route).headers, ['X', '1', 'Content-Length', '3']);
});

test('a reply that was too large to keep has its status, no body and no claim to one', () => {
  const headers = ['Content-Length', '9999999', 'Content-Encoding', 'gzip', 'X', '1'];
  const given = answer({ kind: 'delivered', reply: { status: 201, headers, body: undefined }, attempt: 1 }, route);
  assert.deepEqual(given, {
    status: 201,
    headers: ['X', '1', 'Hookonce-Reply', 'omitted', 'Content-Length', '0'],
    body: Buffer.alloc(0),
  });
});
