/** Queues that are reached by TLS only, with a certificate that only they are trusted by. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { systemClock as clock } from '../../src/clock.ts';
import { startChild } from '../../src/demo/child.ts';
import { freePort } from '../../src/demo/free-port.ts';
import { until } from '../../src/demo/until.ts';
import type { QueueTarget } from '../../src/queue/target.ts';
import { selfSigned } from '../support/certificate.ts';
import { startPostgres } from '../support/postgres.ts';
import { openQueue, postgresTarget, queueOn, redisTarget } from '../support/queues.ts';
import { sample } from './queue-suite.ts';

const own = selfSigned('localhost');
const trusting = (ca: string): QueueTarget['tls'] => ({ ca: Buffer.from(ca), cert: undefined, key: undefined });

async function check(target: QueueTarget): Promise<void> {
  await using end = await openQueue({ ...target, host: 'localhost', tls: trusting(own.cert) });
  const seen: string[] = [];
  end.queue.work(async (job) => {
    seen.push(job.delivery.route);
    return { kind: 'done' };
  });
  assert.equal(await end.queue.enqueue(sample()), 'queued');
  await until(clock, 'the job', async () => (seen.length === 1 ? true : undefined));

  for (const tls of [trusting(selfSigned('localhost').cert), undefined]) {
    await using stranger = queueOn({ ...target, host: 'localhost', tls });
    await clock.sleep(1500);
    assert.equal(await stranger.queue.enqueue(sample()), 'failed', 'not to a server that is not trusted, nor in clear');
  }
}

suite('the queue by TLS', () => {
  test('on PostgreSQL', async () => {
    await using server = await startPostgres({ tls: own });
    await check(postgresTarget(server.port));
  });

  test('on Redis', async () => {
    await using stack = new AsyncDisposableStack();
    const dir = await mkdtemp(join(tmpdir(), 'hookonce-tls-'));
    stack.defer(async () => await rm(dir, { recursive: true }));
    await writeFile(join(dir, 'cert.pem'), own.cert);
    await writeFile(join(dir, 'key.pem'), own.key);
    const port = await freePort();
    const files = ['--tls-cert-file', join(dir, 'cert.pem'), '--tls-key-file', join(dir, 'key.pem')];
    const server = stack.use(
      startChild('redis-server', [
        ...['--port', '0', '--tls-port', String(port), '--bind', '127.0.0.1', '--dir', dir, '--save', ''],
        ...['--tls-ca-cert-file', join(dir, 'cert.pem'), '--tls-auth-clients', 'no', ...files],
      ]),
    );
    await server.line(/Ready to accept connections/);
    await check(redisTarget(port));
  });
});
