/**
 * The one place that reads clocks, sets timers and draws numbers.
 *
 * A timer never fires early by the monotonic clock: Node counts whole milliseconds from a loop time
 * that may lag, so a timer that comes too soon waits for the rest. The same step carries waits that
 * are longer than Node can count.
 */
import type { Cancel, Clock } from './core/ports.ts';

/** The longest delay of Node's timers; anything above fires at once. */
const LONGEST_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => performance.now(),
  wall: () => Date.now(),
  random: () => Math.random(),
  timer: (ms, fn) => startTimer(ms, fn, false),
  soon: (fn) => void setImmediate(fn),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted === true) return resolve();
      const wake = (): void => {
        cancel();
        signal?.removeEventListener('abort', wake);
        resolve();
      };
      const cancel = startTimer(ms, wake, true);
      signal?.addEventListener('abort', wake);
    }),
};

/** `holdsProcess`: whether the process stays alive for it. Work that sleeps between two steps must be let finish. */
function startTimer(ms: number, fn: () => void, holdsProcess: boolean): Cancel {
  const due = performance.now() + ms;
  let handle: NodeJS.Timeout;
  const wait = (left: number): void => {
    handle = setTimeout(tick, Math.min(Math.ceil(left), LONGEST_MS));
    if (!holdsProcess) handle.unref();
  };
  const tick = (): void => {
    const left = due - performance.now();
    if (left > 0) wait(left);
    else fn();
  };
  wait(ms);
  return () => clearTimeout(handle);
}
