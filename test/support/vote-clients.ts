/** Clients for the package `redlock`, as small as it accepts: one function that runs a script. */
import type { Redis } from 'ioredis';

export interface Call {
  readonly hash: string;
  readonly keys: readonly string[];
  readonly args: readonly string[];
}

export interface VoteClient {
  readonly calls: Call[];
}

/** `answer` gives what the script returns, or throws. */
export function voteClient(answer: (call: Call) => unknown): VoteClient & Redis {
  const calls: Call[] = [];
  const run = async (hash: string, count: number, all: readonly unknown[]): Promise<unknown> => {
    const words = all.map(String);
    const call = { hash, keys: words.slice(0, count), args: words.slice(count) };
    calls.push(call);
    return await answer(call);
  };
  return { calls, evalsha: run, eval: run, quit: async () => 'OK' } as unknown as VoteClient & Redis;
}

/** A node's memory for one key, under the package's own three scripts: what it knows of owners, and nothing of time. */
export function lockingClient(held?: string): VoteClient & Redis & { holder: string | undefined } {
  const client = voteClient(({ keys, args: [value, duration] }) => {
    if (duration === undefined) {
      // release
      if (own.holder !== value) return 0;
      own.holder = undefined;
      return keys.length;
    }
    if (own.holder !== undefined) return 0;
    own.holder = value;
    return keys.length;
  });
  const own = Object.assign(client, { holder: held });
  return own;
}

/** Whether a promise has settled once everything that can run has run. */
export async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const note = (): void => void (settled = true);
  promise.then(note, note);
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  return settled;
}
