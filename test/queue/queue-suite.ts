/** What every implementation of the ports `Queue` and `DeadLetters` does. Each test has a service of its own. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, suite, test } from 'node:test';
import { systemClock as clock } from '../../src/clock.ts';
import type { DeadLetters } from '../../src/core/dead-letters.ts';
import type { AttemptRecord, Enqueued, Fate, Job, Queue } from '../../src/core/queue.ts';
import type { QueuedDelivery } from '../../src/core/queued.ts';
import { until } from '../../src/demo/until.ts';
import { freshKey } from '../support/quorum.ts';

/** One gateway's end of a queue. */
export interface End extends AsyncDisposable {
  readonly queue: Queue;
  readonly deadLetters: DeadLetters;
}

export interface Server extends AsyncDisposable {
  /** Connected to the queue of a service. */
  open(service: string, concurrency?: number): Promise<End>;
}

export function queueSuite(name: string, start: () => Promise<Server>): void {
  suite(name, { concurrency: true }, () => {
    let server: Server;
    before(async () => void (server = await start()));
    after(async () => await server[Symbol.asyncDispose]());

    test('what is put in is handed out as it was, byte for byte', async () => {
      await using end = await server.open(fresh());
      const jobs: Job[] = [];
      const delivery = sample({
        body: Buffer.from([0, 255, 254, 10, 13, 195, 40, 0]),
        headers: ['X-A', '1', 'x-a', '2', 'Signature', 'sha256=\u00e9\u00ff', 'Empty', ''],
        peer: { address: '192.0.2.7', believed: false },
        place: { lock: freshKey(), versions: freshKey(), version: '1019' },
        traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
        traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
      });
      end.queue.work(doing((job) => void jobs.push(job)));
      assert.equal(await end.queue.enqueue(delivery), 'queued');
      const job = await first(jobs);
      assert.deepEqual(plain(job.delivery), plain(delivery));
      assert.deepEqual([job.attempt, job.replay], [1, undefined]);
      assert.deepEqual(await end.deadLetters.ids(), []);
    });

    test('what may be missing comes back missing', async () => {
      await using end = await server.open(fresh());
      const jobs: Job[] = [];
      end.queue.work(doing((job) => void jobs.push(job)));
      await end.queue.enqueue(sample({ key: undefined, body: Buffer.alloc(0) }));
      const { delivery } = await first(jobs);
      assert.deepEqual(
        [delivery.key, delivery.peer, delivery.place, delivery.traceId, delivery.traceparent],
        Array(5).fill(undefined),
      );
      assert.equal(delivery.body.length, 0);
    });

    test('two ends share the work, and each job is handed to one of them', async () => {
      const service = fresh();
      await using one = await server.open(service, 3);
      await using two = await server.open(service, 3);
      const seen: string[] = [];
      for (const end of [one, two]) {
        end.queue.work(async (job) => {
          seen.push(job.delivery.target);
          await clock.sleep(5);
          return done;
        });
      }
      const targets = Array.from({ length: 60 }, (_, n) => `/hook?n=${n}`);
      await Promise.all(targets.map(async (target, n) => await [one, two][n % 2]!.queue.enqueue(sample({ target }))));
      await until(clock, 'all jobs', async () => (seen.length >= 60 ? true : undefined));
      assert.deepEqual(seen.sort(), targets.sort());
    });

    test('a job is taken at once, however long the name of the service is', async () => {
      await using end = await server.open(`payments/${'x'.repeat(82)}/${randomUUID()}`);
      const taken: number[] = [];
      end.queue.work(doing(() => void taken.push(clock.now())));
      await clock.sleep(500);
      const putMs = clock.now();
      assert.equal(await end.queue.enqueue(sample()), 'queued');
      await until(clock, 'the job', async () => taken[0]);
      assert.ok(taken[0]! - putMs < 3000, `${taken[0]! - putMs} ms`);
    });

    test('services do not see each other', async () => {
      await using one = await server.open(fresh());
      await using two = await server.open(fresh());
      const seen: string[] = [];
      one.queue.work(doing((job) => void seen.push(`one ${job.delivery.target}`)));
      two.queue.work(doing((job) => void seen.push(`two ${job.delivery.target}`)));
      await one.queue.enqueue(sample({ target: '/1' }));
      await two.queue.enqueue(sample({ target: '/2' }));
      await until(clock, 'both', async () => (seen.length === 2 ? true : undefined));
      assert.deepEqual(seen.sort(), ['one /1', 'two /2']);
    });

    test('no more at a time than is asked for', async () => {
      await using end = await server.open(fresh(), 4);
      let active = 0;
      let most = 0;
      let ended = 0;
      end.queue.work(async () => {
        most = Math.max(most, (active += 1));
        await clock.sleep(20);
        active -= 1;
        ended += 1;
        return done;
      });
      await Promise.all(Array.from({ length: 24 }, async () => await end.queue.enqueue(sample())));
      await until(clock, 'all jobs', async () => (ended === 24 ? true : undefined));
      assert.equal(most, 4);
    });

    test('waiting uses no attempt, failing does; both take the time that was said', async () => {
      await using end = await server.open(fresh());
      const tries: { attempt: number; ms: number }[] = [];
      const fates: Fate[] = [
        { kind: 'wait', ms: 300 },
        { kind: 'wait', ms: 0 },
        { kind: 'retry', ms: 300, attempt: record(1) },
        { kind: 'retry', ms: 0, attempt: record(2) },
        done,
      ];
      end.queue.work(async (job) => {
        tries.push({ attempt: job.attempt, ms: clock.now() });
        return fates[tries.length - 1]!;
      });
      await end.queue.enqueue(sample());
      await until(clock, 'the last try', async () => (tries.length === 5 ? true : undefined));
      assert.deepEqual(
        tries.map(({ attempt }) => attempt),
        [1, 1, 1, 2, 3],
      );
      assert.ok(tries[1]!.ms - tries[0]!.ms >= 290, 'too soon after the wait');
      assert.ok(tries[3]!.ms - tries[2]!.ms >= 290, 'too soon after the failure');
    });

    test('a dead letter is kept whole, with its history', async () => {
      await using end = await server.open(fresh());
      const delivery = sample({ body: Buffer.from([1, 0, 2]) });
      end.queue.work(async ({ attempt }) =>
        attempt < 3 ? { kind: 'retry', ms: 0, attempt: record(attempt) } : { kind: 'dead', attempt: record(attempt) },
      );
      const before = clock.wall();
      await end.queue.enqueue(delivery);
      const [id] = await dead(end, 1);
      const letter = (await end.deadLetters.get(id!))!;
      assert.deepEqual(plain(letter.delivery), plain(delivery));
      assert.deepEqual(letter.history, [record(1), record(2), record(3)]);
      assert.deepEqual([letter.attempts, letter.lastError, letter.replays], [3, 'failed 3', 0]);
      assert.ok(letter.diedWallMs >= before - 5 && letter.diedWallMs <= clock.wall() + 5);
    });

    test('replayed: it comes again with all its attempts and its bytes, and dies again if need be', async () => {
      await using end = await server.open(fresh());
      const jobs: Job[] = [];
      end.queue.work(async (job) => {
        jobs.push(job);
        return jobs.length < 3 ? { kind: 'dead', attempt: record(job.attempt) } : done;
      });
      const delivery = sample({ body: Buffer.from('ünïcode') });
      await end.queue.enqueue(delivery);
      const [id] = await dead(end, 1);
      const askedMs = clock.wall();
      assert.equal(await end.deadLetters.replay(id!, ''), 'replayed');
      await until(clock, 'the second try', async () => (jobs.length === 2 ? true : undefined));
      await dead(end, 1);
      const letter = (await end.deadLetters.get(id!))!;
      assert.deepEqual([letter.replays, letter.attempts, letter.history.length], [1, 1, 2]);
      assert.equal(await end.deadLetters.replay(id!, 'once more'), 'replayed');
      await until(clock, 'the third try', async () => (jobs.length === 3 ? true : undefined));
      assert.deepEqual(
        jobs.map(({ attempt, replay }) => [attempt, replay?.again]),
        [
          [1, undefined],
          [1, ''],
          [1, 'once more'],
        ],
      );
      assert.ok(jobs[1]!.replay!.wallMs >= askedMs - 5);
      for (const job of jobs) assert.deepEqual(plain(job.delivery), plain(delivery));
      await dead(end, 0);
      assert.equal(await end.deadLetters.get(id!), undefined);
    });

    test('of many who replay a dead letter at the same time one is told so, and it comes once', async () => {
      const service = fresh();
      await using one = await server.open(service);
      await using two = await server.open(service);
      const tries: number[] = [];
      one.queue.work(async ({ replay, attempt }) => {
        if (!replay) return { kind: 'dead', attempt: record(attempt) };
        tries.push(clock.now());
        return done;
      });
      await one.queue.enqueue(sample());
      const [id] = await dead(one, 1);
      const told = await Promise.all(
        Array.from({ length: 8 }, async (_, n) => await [one, two][n % 2]!.deadLetters.replay(id!, '')),
      );
      assert.deepEqual(told.filter((result) => result === 'replayed').length, 1, told.join());
      await until(clock, 'the replay', async () => (tries.length > 0 ? true : undefined));
      assert.equal(await one.deadLetters.replay(id!, ''), 'gone');
      assert.equal(tries.length, 1);
    });

    test('discarded is gone for good, and what is no dead letter cannot be replayed or discarded', async () => {
      await using end = await server.open(fresh());
      end.queue.work(async ({ attempt }) => ({ kind: 'dead', attempt: record(attempt) }));
      await end.queue.enqueue(sample());
      const [id] = await dead(end, 1);
      assert.equal(await end.deadLetters.discard(id!), 'discarded');
      assert.equal(await end.deadLetters.discard(id!), 'gone');
      assert.equal(await end.deadLetters.replay(id!, ''), 'gone');
      assert.equal(await end.deadLetters.get(id!), undefined);
      assert.equal(await end.deadLetters.replay('never-there', ''), 'gone');
      assert.deepEqual(await end.deadLetters.ids(), []);
    });

    test('a job that waits or is worked on is no dead letter: it cannot be discarded', async () => {
      await using end = await server.open(fresh());
      const finish = Promise.withResolvers<void>();
      const jobs: Job[] = [];
      end.queue.work(async (job) => {
        jobs.push(job);
        await finish.promise;
        return done;
      });
      await end.queue.enqueue(sample());
      const { id } = await first(jobs);
      assert.equal(await end.deadLetters.discard(id), 'gone');
      assert.equal(await end.deadLetters.replay(id, ''), 'gone');
      finish.resolve();
    });

    test('stopped: jobs under way end, and no more are taken', async () => {
      const service = fresh();
      await using one = await server.open(service, 1);
      const taken: string[] = [];
      const finish = Promise.withResolvers<void>();
      one.queue.work(async (job) => {
        taken.push(job.delivery.target);
        await finish.promise;
        return done;
      });
      await one.queue.enqueue(sample({ target: '/1' }));
      await until(clock, 'the first job', async () => (taken.length === 1 ? true : undefined));
      await one.queue.enqueue(sample({ target: '/2' }));
      const stopped = one.queue.stop();
      finish.resolve();
      await stopped;
      assert.deepEqual(taken, ['/1']);
      await using two = await server.open(service);
      const left: string[] = [];
      two.queue.work(doing((job) => void left.push(job.delivery.target)));
      await until(clock, 'the second job', async () => (left.length === 1 ? true : undefined));
      assert.deepEqual(left, ['/2']);
    });

    test('put in by many at once: all of them are there', async () => {
      await using end = await server.open(fresh());
      const results = await Promise.all(
        Array.from(
          { length: 200 },
          async (_, n): Promise<Enqueued> => await end.queue.enqueue(sample({ target: `/${n}` })),
        ),
      );
      assert.ok(results.every((result) => result === 'queued'));
      const seen = new Set<string>();
      end.queue.work(doing((job) => void seen.add(job.delivery.target)));
      await until(clock, 'all of them', async () => (seen.size === 200 ? true : undefined));
    });
  });
}

/** A service that no other test has, named as a chart names them. */
const fresh = (): string => `payments/orders.v2_${randomUUID()}`;
const done: Fate = { kind: 'done' };
const doing =
  (look: (job: Job) => void) =>
  async (job: Job): Promise<Fate> => {
    look(job);
    return done;
  };

/** A delivery that nothing is special about. */
export function sample(change: Partial<QueuedDelivery> = {}): QueuedDelivery {
  return {
    route: 'github',
    key: 'AAAAAAAAAAAAAAAAAAAAAA',
    method: 'POST',
    target: '/github?x=%2f',
    headers: ['Host', 'example.test', 'X-GitHub-Delivery', 'one'],
    body: Buffer.from('{"a":1}'),
    peer: undefined,
    traceId: undefined,
    traceparent: undefined,
    acceptedWallMs: Math.floor(clock.wall()),
    ...change,
  };
}

export function record(attempt: number): AttemptRecord {
  return { wallMs: 1000 + attempt, attempt, outcome: 'refused', status: 500, message: `failed ${attempt}`, tookMs: 7 };
}

async function first(jobs: readonly Job[]): Promise<Job> {
  return await until(clock, 'a job', async () => jobs[0]);
}

/** Resolves with the ids of the dead letters once there are so many. */
async function dead(end: End, count: number): Promise<readonly string[]> {
  return await until(clock, `${count} dead letters`, async () => {
    const ids = await end.deadLetters.ids();
    return ids.length === count ? ids : undefined;
  });
}

/** With the body in a form that a difference can be read in; what is missing and what is undefined are the same. */
function plain(delivery: QueuedDelivery): unknown {
  return JSON.parse(JSON.stringify({ ...delivery, body: delivery.body.toString('hex') }));
}
