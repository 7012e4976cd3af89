/**
 * A cache of promises by key. The work for a key starts once, and later calls return the same promise. A promise that
 * rejects is dropped, so that the next call starts the work again. The cache has no limit and no expiry.
 */
export class PromiseCache<K, T> {
  readonly #promises = new Map<K, Promise<T>>();

  /**
   * Returns the pending or resolved promise for a key. If there is no promise, calls `start` and returns its promise.
   */
  get(key: K, start: () => Promise<T>): Promise<T> {
    const known = this.#promises.get(key);
    if (known) return known;
    const started = start();
    this.set(key, started);
    return started;
  }

  /** Replaces the promise for a key. */
  set(key: K, promise: Promise<T>): void {
    this.#promises.set(key, promise);
    promise.catch(() => {
      // A newer promise may have replaced this promise.
      if (this.#promises.get(key) === promise) this.#promises.delete(key);
    });
  }

  /** Returns true if the work for a key has started and has not failed. */
  has(key: K): boolean {
    return this.#promises.has(key);
  }

  /** Returns the pending and resolved promises. */
  values(): IterableIterator<Promise<T>> {
    return this.#promises.values();
  }

  /** Drops all promises. */
  clear(): void {
    this.#promises.clear();
  }
}

/**
 * Wraps an asynchronous function so that concurrent calls share one execution and its result. The execution gets the
 * arguments of the first call.
 */
export function sharedWhilePending<Args extends unknown[], T>(
  start: (...args: Args) => Promise<T>,
): (...args: Args) => Promise<T> {
  let pending: Promise<T> | undefined;
  return (...args) => {
    pending ??= start(...args).finally(() => {
      pending = undefined;
    });
    return pending;
  };
}
