/** Gives the turn to one caller at a time, in the order of their calls. */
export class TurnQueue {
  #taken = false;
  readonly #waiting: (() => void)[] = [];
  readonly #overtaking: (() => void)[] = [];

  /**
   * Waits for the turn. The caller ends it with the returned function; later calls of that function do nothing.
   * @param overtakes goes before callers that do not; for short turns, which delay the others little
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
