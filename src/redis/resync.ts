/**
 * Copies records to a voter that lost its own (protocol section 6). The union of a quorum's records holds
 * every event that was ever forwarded or completed, as each of them was written to a quorum.
 */
import type { Clock } from '../core/ports.ts';
import type { Voter } from './voter.ts';

/** The right to copy runs out this long after the last page, so that another gateway can take over. */
const RIGHT_MS = 10_000;
/** A page is tried again this often: one slow answer in a million must not begin everything anew. */
const TRIES = 20;
const PAUSE_MS = 250;
/** Records copied in one go. Each goes through the event loop that deliveries go through, and through both servers. */
const SLICE = 100;
/** For each time of work so many of rest: whatever the machine can do, half of it is left to deliveries at least. */
const REST = 1;

export interface ResyncOptions {
  /** Records per second at most, so that deliveries go on beside it. */
  readonly rate: number;
  readonly token: string;
}

/**
 * True when every record of the sources has reached the learner, and none of them has started anew meanwhile:
 * one that forgot in the middle shows an empty rest. False as soon as that cannot come true any more.
 */
export async function resync(
  learner: Voter,
  sources: readonly Voter[],
  options: ResyncOptions,
  clock: Clock,
  stopped: AbortSignal,
): Promise<boolean> {
  const voters = [learner, ...sources];
  const boots = voters.map((voter) => voter.boot);
  const unchanged = (): boolean => !stopped.aborted && voters.every((voter, index) => voter.boot === boots[index]);
  for (const source of sources) {
    let cursor: string | undefined;
    for (let failures = 0; cursor !== '0';) {
      const next = await copyPage(learner, source, cursor ?? '0', options, clock, stopped);
      if (next !== undefined) [cursor, failures] = [next, 0];
      else failures += 1;
      if (!unchanged() || failures === TRIES) return false;
      if (next === undefined) await clock.sleep(PAUSE_MS, stopped);
    }
  }
  // An empty page does not tell the boot of the voter that gave it: each says once more who it is.
  const answered = await Promise.all(voters.map(async (voter) => await voter.greet()));
  return answered.every((each) => each) && unchanged();
}

/** The next page's cursor; undefined when anything on this one is without an answer: it is to be copied again. */
async function copyPage(
  learner: Voter,
  source: Voter,
  cursor: string,
  { rate, token }: ResyncOptions,
  clock: Clock,
  stopped: AbortSignal,
): Promise<string | undefined> {
  let startedMs = clock.now();
  const page = await source.scan(cursor).catch(() => undefined);
  if (!page || !(await learner.startSync(token, RIGHT_MS))) return undefined;
  for (let at = 0; at === 0 || at < page.ids.length; at += SLICE) {
    const slice = page.ids.slice(at, at + SLICE);
    if (!(await copySlice(learner, source, slice))) return undefined;
    const tookMs = clock.now() - startedMs;
    await clock.sleep(Math.max(tookMs * REST, (slice.length / rate) * 1000 - tookMs), stopped);
    if (stopped.aborted) return undefined;
    startedMs = clock.now();
  }
  return page.cursor;
}

async function copySlice(learner: Voter, source: Voter, ids: readonly string[]): Promise<boolean> {
  const copied = await Promise.all(
    ids.map(async (id) => {
      const record = await source.ask({ op: 'read', id });
      if (record.status === 'versions') {
        if (record.leftMs <= 0) return true;
        const { applied, pending, leftMs: keptMs } = record;
        const told = await learner.ask({ op: 'order', id, applied, pending, instead: '', recordMs: keptMs });
        return told.status === 'versions';
      }
      if (record.status !== 'record') return false;
      if (record.leftMs <= 0) return true;
      const { done, attempt, floor, content, leftMs: recordMs } = record;
      return (await learner.ask({ op: 'learn', id, done, attempt, floor, content, recordMs })).status === 'ok';
    }),
  );
  return copied.every((each) => each);
}
