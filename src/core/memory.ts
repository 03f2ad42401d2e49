/**
 * The limit for all bodies in memory together, in bytes: those of deliveries, of their replies, and what
 * content codings hide. One delivery takes its share as bytes come, and gives it back when the last part
 * of the program has let go of it: the answer has left, and the exchange with the application is over.
 */
export interface Memory {
  /** An empty share, held once. */
  open(): Share;
  /** Another limit from now on; who holds more than it allows keeps that until it is given back. */
  resize(limit: number): void;
}

export interface Share {
  /** False when the limit would be passed; nothing is taken then. */
  take(bytes: number): boolean;
  /** One more part of the program holds on to all that was taken. */
  hold(): void;
  /** Lets go; the last one gives everything back. */
  release(): void;
}

/** `onChange` hears how many bytes are held. */
export function createMemory(limit: number, onChange: (held: number) => void): Memory {
  let most = limit;
  let held = 0;
  return {
    resize: (next) => void (most = next),
    open() {
      let taken = 0;
      let holders = 1;
      return {
        take(bytes) {
          if (held + bytes > most) return false;
          taken += bytes;
          if (bytes > 0) onChange((held += bytes));
          return true;
        },
        hold: () => void (holders += 1),
        release() {
          holders -= 1;
          if (holders > 0 || taken === 0) return;
          onChange((held -= taken));
          taken = 0;
        },
      };
    },
  };
}
