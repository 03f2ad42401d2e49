// Run by `helm test`: posts one signed event twice and asserts that only the first delivery was forwarded.
// GATEWAY_URL: where the test's route is. SECRET_FILE: the secret that signs it.
import { createHmac, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const { GATEWAY_URL, SECRET_FILE, PATIENCE_S = '60' } = process.env;
const secret = readFileSync(SECRET_FILE, 'utf8').replace(/\r?\n$/, '');
const body = JSON.stringify({ id: `hookonce-test-${randomUUID()}` });

async function post() {
  const timestamp = String(Math.floor(Date.now() / 1000));
  const signature = createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex');
  const headers = { 'x-hookonce-test-timestamp': timestamp, 'x-hookonce-test-signature': signature };
  const reply = await fetch(GATEWAY_URL, { method: 'POST', body, headers, redirect: 'manual' });
  await reply.arrayBuffer();
  // The application's own answers come without an outcome.
  return { status: reply.status, outcome: reply.headers.get('hookonce-outcome') ?? 'forwarded' };
}

/** Nodes that have just started do not vote for the life of a lock, and pods may still be starting. */
async function forwarded() {
  const end = performance.now() + Number(PATIENCE_S) * 1000;
  for (;;) {
    const reply = await post().catch((error) => ({ status: 0, outcome: `no answer: ${error.cause ?? error}` }));
    const passing = [0, 502, 503, 504].includes(reply.status) && reply.outcome !== 'forwarded';
    if (!passing || performance.now() > end) return reply;
    console.log(`${reply.status} ${reply.outcome}, trying again`);
    await sleep(1000);
  }
}

const first = await forwarded();
console.log(`first delivery:  ${first.status} ${first.outcome}`);
if (first.outcome !== 'forwarded') fail('it was not forwarded');
const second = await post();
console.log(`second delivery: ${second.status} ${second.outcome}`);
if (second.outcome !== 'duplicate') {
  fail(
    first.status >= 500
      ? `the application failed (${first.status}), so the second delivery was rightly not taken for a duplicate`
      : 'it was not taken for a duplicate',
  );
}
console.log('one event, delivered twice, forwarded once');

function fail(why) {
  console.error(`failed: ${why}`);
  process.exit(1);
}
