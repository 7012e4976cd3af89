/** Lets one at a time through, in the order of asking. */
export class TurnQueue {
  #taken = false;
  readonly #waiting: (() => void)[] = [];
  readonly #overtaking: (() => void)[] = [];

  /**
   * Waits for the turn; the caller ends it with the function returned, which works once.
   * @param overtakes before those that do not: for turns that end at once, so that they keep nobody waiting
   */
  async take(overtakes = false): Promise<() => void> {
    const queue = overtakes ? this.#overtaking : this.#waiting;
    if (this.#taken) await new Promise<void>((resolve) => queue.push(resolve));
    this.#taken = true;
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      const next = this.#overtaking.shift() ?? this.#waiting.shift();
      if (next) next();
      else this.#taken = false;
    };
  }
}
