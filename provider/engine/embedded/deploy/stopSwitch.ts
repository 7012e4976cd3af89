/** Why a run stops before its end. */
export type StopReason = "failed" | "cancelled" | "unsupported";

/** Pressed once, where a run must not start anything more; what is in flight is finished. */
export class StopSwitch {
  #reason: StopReason | undefined;
  readonly #pressed: Promise<void>;
  #press: () => void = () => {};
  readonly #inFlight = new Set<Promise<unknown>>();

  constructor() {
    this.#pressed = new Promise((resolve) => {
      this.#press = resolve;
    });
  }

  get reason(): StopReason | undefined {
    return this.#reason;
  }

  /** Stops; only the first reason counts. */
  stop(reason: StopReason): void {
    this.#reason ??= reason;
    this.#press();
  }

  /** Resolves once stopped. */
  get stopped(): Promise<void> {
    return this.#pressed;
  }

  /** Keeps track of work that must be finished before the run ends. */
  track<T>(work: Promise<T>): Promise<T> {
    this.#inFlight.add(work);
    const done = (): void => {
      this.#inFlight.delete(work);
    };
    work.then(done, done);
    return work;
  }

  /** Resolves when nothing tracked is left. */
  async settled(): Promise<void> {
    while (this.#inFlight.size > 0) await Promise.allSettled([...this.#inFlight]);
  }
}

/** A promise that stays open: the answer to a program that is about to be ended. */
export function never(): Promise<never> {
  return new Promise(() => {});
}
