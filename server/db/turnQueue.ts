/** Lets one at a time through, in the order of asking. */
export class TurnQueue {
  #taken = false;
  readonly #waiting: (() => void)[] = [];

  /** Waits for the turn; the caller ends it with the function returned, which works once. */
  async take(): Promise<() => void> {
    if (this.#taken) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#taken = true;
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      const next = this.#waiting.shift();
      if (next) next();
      else this.#taken = false;
    };
  }
}
