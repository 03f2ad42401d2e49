/** The limit for all buffered bodies together, in bytes. */
export interface Memory {
  /** False when the limit would be passed; nothing is taken then. */
  take(bytes: number): boolean;
  give(bytes: number): void;
}

/** `onChange` hears how many bytes are held. */
export function createMemory(limit: number, onChange: (held: number) => void): Memory {
  let held = 0;
  return {
    take(bytes) {
      if (held + bytes > limit) return false;
      if (bytes > 0) onChange((held += bytes));
      return true;
    },
    give(bytes) {
      if (bytes > 0) onChange((held -= bytes));
    },
  };
}
