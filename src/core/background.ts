/** Work that outlives the answer to its delivery; shutdown waits for it. */
export class Background {
  readonly #running = new Set<Promise<void>>();

  run(work: Promise<void>): void {
    const running = work.finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }
}
