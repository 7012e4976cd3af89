import { BusyError } from "../errors.ts";

/**
 * Runs a limited number of jobs at the same time, in the order of the calls. The number of waiting jobs is also
 * limited.
 */
export class Semaphore {
  #free: number;
  readonly #maximumWaiting: number;
  readonly #refusal: string;
  readonly #waiting = new Set<() => void>();

  /**
   * Creates a semaphore.
   * @param refusal error message for a job that is refused because too many jobs are waiting
   */
  constructor(count: number, maximumWaiting: number, refusal: string) {
    this.#free = count;
    this.#maximumWaiting = maximumWaiting;
    this.#refusal = refusal;
  }

  /**
   * Runs a job as soon as a slot is free.
   * @param signal cancels the job; has no effect after the job has started
   * @throws BusyError too many jobs are already waiting
   */
  async run<T>(job: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    if (this.#free > 0) this.#free -= 1;
    else await this.#wait(signal);
    try {
      return await job();
    } finally {
      const [next] = this.#waiting;
      if (next) next();
      else this.#free += 1;
    }
  }

  #wait(signal: AbortSignal | undefined): Promise<void> {
    if (this.#waiting.size >= this.#maximumWaiting) {
      throw new BusyError(this.#refusal, { "Retry-After": "5" });
    }
    return new Promise((resolve, reject) => {
      const abort = () => {
        this.#waiting.delete(begin);
        reject(signal?.reason);
      };
      const begin = () => {
        this.#waiting.delete(begin);
        signal?.removeEventListener("abort", abort);
        resolve();
      };
      this.#waiting.add(begin);
      signal?.addEventListener("abort", abort, { once: true });
    });
  }
}
