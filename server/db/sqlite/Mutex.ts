/** A lock that only one caller can hold at a time. Callers receive the lock in the order of their calls. */
export class Mutex {
  #locked = false;
  readonly #waiting: (() => void)[] = [];
  readonly #overtaking: (() => void)[] = [];

  /**
   * Waits for the lock, and returns a function that releases it. Later calls of the returned function have no effect.
   * @param overtakes true to receive the lock before waiting callers that did not set `overtakes`. Set it if the caller
   *   holds the lock only briefly.
   */
  async acquire(overtakes = false): Promise<() => void> {
    const queue = overtakes ? this.#overtaking : this.#waiting;
    if (this.#locked) await new Promise<void>((resolve) => queue.push(resolve));
    this.#locked = true;
    let released = false;
    return () => {
      if (released) return;
      released = true;
      const next = this.#overtaking.shift() ?? this.#waiting.shift();
      if (next) next();
      else this.#locked = false;
    };
  }
}
