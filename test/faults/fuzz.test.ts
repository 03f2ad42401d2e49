/**
 * Whatever bytes arrive, the process lives, answers or closes within its limits, and the next good delivery succeeds.
 * HOOKONCE_FUZZ_SEED repeats a run; HOOKONCE_TEST_FULL=1 makes it long.
 */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test, type TestContext } from 'node:test';
import * as fc from 'fast-check';
import { systemClock } from '../../src/clock.ts';
import { header } from '../../src/core/delivery.ts';
import type { Visit } from '../../src/demo/application.ts';
import { exchange } from '../../src/demo/exchange.ts';
import { startGateway, type Gateway } from '../../src/demo/gateway.ts';
import * as signers from '../../src/demo/signers.ts';
import { until } from '../../src/demo/until.ts';
import { scriptedApplication } from '../support/application.ts';
import { gatewayConfig, secretFiles, secrets } from '../support/config.ts';
import { github } from '../support/deliveries.ts';
import { startEdge } from '../support/edge.ts';
import { hostilePieces, type Pieces } from '../support/hostile-bytes.ts';
import { program } from '../support/program.ts';
import { headerLines } from '../support/raw-client.ts';
import { ask } from '../support/raw-connection.ts';

const full = process.env['HOOKONCE_TEST_FULL'] === '1';
const seed = Number(process.env['HOOKONCE_FUZZ_SEED'] ?? randomInt(2 ** 31));
const bounds = { seed, numRuns: full ? 20_000 : 400 };
const LIMIT_MS = full ? 240_000 : 4_000;

/** Longer than any limit that is tested here, with patience for a busy machine. */
const PATIENCE_MS = 20_000;

/** How a client ends: it is done writing, it breaks off, or it writes no more and waits. */
type Ending = 'finish' | 'reset' | 'wait';

/** Resolves with the bytes that came back, when the server has closed; with `wait` already once it has answered. Rejects when neither happens. */
async function exchangeBytes(port: number, pieces: Pieces, ending: Ending): Promise<Buffer> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }).setNoDelay(true);
  await once(socket, 'connect');
  const received: Buffer[] = [];
  const over = Promise.withResolvers<void>();
  const patience = systemClock.timer(PATIENCE_MS, () =>
    over.reject(new Error(`neither an answer nor an end after ${ending}`)),
  );
  socket.on('error', () => undefined);
  socket.on('close', () => over.resolve());
  socket.on('end', () => {
    over.resolve();
    socket.end();
  });
  socket.on('data', (chunk: Buffer) => {
    received.push(chunk);
    if (ending === 'wait') over.resolve();
  });
  for (const piece of pieces) {
    if (socket.destroyed || socket.writableEnded) break;
    await new Promise((resolve) => socket.write(piece, 'latin1', resolve));
    // Another turn for each piece, so that the server reads some of them apart.
    await systemClock.sleep(0);
  }
  try {
    if (ending === 'reset') socket.resetAndDestroy();
    if (ending === 'finish') socket.end();
    await over.promise;
  } finally {
    patience();
    socket.destroy();
  }
  return Buffer.concat(received);
}

/** An answer begins as one, and is not one of an error that nobody thought of. */
function assertSound(answer: Buffer): void {
  const [line = ''] = answer.subarray(0, 100).toString('latin1').split('\r\n');
  assert.match(line, /^(HTTP\/1\.1 [1-5]\d\d .*)?$/);
  assert.doesNotMatch(line, / 500 /);
}

/** A delivery down to its bytes; the connection is to be kept. */
function bytesOf(path: string, { headers, body }: signers.Signed): Buffer {
  const head = [
    `POST ${path} HTTP/1.1`,
    'Host: g.example',
    ...headerLines(headers),
    `Content-Length: ${body.length}`,
    '',
    '',
  ];
  return Buffer.concat([Buffer.from(head.join('\r\n'), 'latin1'), body]);
}

async function alive({ adminUrl }: Gateway): Promise<boolean> {
  return await exchange(`${adminUrl}/livez`).then(
    () => true,
    () => false,
  );
}

/** The application was handed it as a delivery, and the signature holds. */
function signed(visit: Visit): boolean {
  return header(visit.headers, 'x-hub-signature-256') === `sha256=${signers.hmacHex(secrets.github, visit.body)}`;
}

/** Runs `attack` on draw after draw, until there have been enough or time is up; what fails is shrunk within that time. */
async function fuzz(
  t: TestContext,
  good: Buffer,
  clients: number,
  attack: (all: Pieces[], ending: Ending) => Promise<void>,
): Promise<void> {
  t.diagnostic(`HOOKONCE_FUZZ_SEED=${seed}`);
  const endMs = systemClock.now() + LIMIT_MS;
  let runs = 0;
  const all = fc.array(hostilePieces(good), { minLength: Math.ceil(clients / 4), maxLength: clients });
  const property = fc.asyncProperty(all, fc.constantFrom<Ending>('finish', 'finish', 'reset'), async (...drawn) => {
    if (systemClock.now() > endMs) return;
    runs += 1;
    await attack(...drawn);
  });
  await fc.assert(property, bounds);
  t.diagnostic(`${runs} runs`);
}

for (const unmatched of ['reject', 'proxy'] as const) {
  test(`a gateway (unmatched: ${unmatched}) outlives whatever it is sent`, async (t) => {
    await using application = await scriptedApplication();
    const config = { ...gatewayConfig(application.url, []), unmatched };
    await using gateway = await startGateway(program, systemClock, { config, files: secretFiles });
    const port = Number(new URL(gateway.url).port);
    let next = 0;
    await fuzz(t, bytesOf('/github', github('fuzz')), 4, async (all, ending) => {
      try {
        for (const answer of await Promise.all(all.map((pieces) => exchangeBytes(port, pieces, ending))))
          assertSound(answer);
        const id = `good-${(next += 1)}`;
        assert.equal((await ask(port, bytesOf('/github', github(id)))).status, 200);
        assert.equal(application.of(id).length, 1);
      } catch (error) {
        if (await alive(gateway)) throw error;
        const { lines } = gateway.child;
        // Another one, so that what is tried while shrinking does not fail for that alone.
        await gateway.restart();
        throw new Error(`the gateway has ended: ${lines.slice(-5).join('\n')}`, { cause: error });
      }
    });

    const unsigned = application.visits.filter((visit) => visit.key !== '' && !signed(visit));
    assert.deepEqual(unsigned, []);
    if (unmatched === 'reject') assert.ok(application.visits.every(signed));
  });
}

test('a client that stops in the middle is answered or cut off in time, whatever it wrote', async (t) => {
  await using edge = await startEdge(undefined, { receive: { headersMs: 200, bodyMs: 200 } });
  const post = { headers: ['Content-Type', 'application/json'], body: Buffer.alloc(100, 'x') };
  await fuzz(t, bytesOf('/hook', post), 40, async (all) => {
    for (const answer of await Promise.all(all.map((pieces) => exchangeBytes(edge.port, pieces, 'wait'))))
      assertSound(answer);
    assert.equal((await ask(edge.port, bytesOf('/hook', post))).status, 200);
  });
  await until(systemClock, 'nothing that is held', () => (edge.inFlight() === 0 && edge.buffered() === 0) || undefined);
});
