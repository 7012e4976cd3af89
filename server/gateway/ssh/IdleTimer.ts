/** Calls a function once nothing has happened for a time. It holds one timer, however much happens. */
export class IdleTimer {
  readonly #limit: number;
  readonly #onIdle: () => void;
  #timer: NodeJS.Timeout | undefined;
  #activeAt = 0;

  /** @param limit in milliseconds; 0: it never calls the function */
  constructor(limit: number, onIdle: () => void) {
    this.#limit = limit;
    this.#onIdle = onIdle;
  }

  start(): void {
    this.noteActivity();
    if (this.#limit > 0) this.#wait(this.#limit);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  noteActivity(): void {
    this.#activeAt = performance.now();
  }

  #wait(time: number): void {
    this.#timer = setTimeout(() => {
      const left = this.#activeAt + this.#limit - performance.now();
      if (left > 0) this.#wait(left);
      else this.#onIdle();
    }, time).unref();
  }
}
