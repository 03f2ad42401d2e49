/** Business events as a test sees them: all that were told, in order, and a way to wait for one. */
import type { Events } from '../../src/core/ports.ts';

type Name = keyof Events;

export interface RecordedEvents extends Events {
  readonly log: readonly (readonly [Name, ...unknown[]])[];
  /** The arguments of every event of this name. */
  of<N extends Name>(name: N): Parameters<Events[N]>[];
  /** Resolves with the first value that is not undefined; `look` is asked now and after every event. */
  until<T>(look: () => T | undefined): Promise<T>;
}

export function recordedEvents(): RecordedEvents {
  const log: [Name, ...unknown[]][] = [];
  let told = Promise.withResolvers<void>();
  const recorder = {
    log,
    of: (name: Name) => log.filter(([one]) => one === name).map(([, ...args]) => args),
    until: async <T>(look: () => T | undefined): Promise<T> => {
      for (;;) {
        const found = look();
        if (found !== undefined) return found;
        await told.promise;
      }
    },
  };
  return new Proxy(recorder, {
    get: (known, name) =>
      name in known || typeof name === 'symbol' || name === 'then'
        ? Reflect.get(known, name)
        : (...args: unknown[]) => {
            log.push([name as Name, ...args]);
            told.resolve();
            told = Promise.withResolvers();
          },
  }) as unknown as RecordedEvents;
}
