/** The values that were used last, by their keys: a new one replaces the one whose last use is the longest ago. */
export class RecentlyUsed<T> {
  readonly #values = new Map<string, T>();
  readonly #size: number;

  /** @param size how many are kept */
  constructor(size: number) {
    this.#size = size;
  }

  /** The value of this key, which is made where it is not kept. @throws what `make` throws; then nothing is kept */
  get(key: string, make: () => T): T {
    const value = this.#values.has(key) ? (this.#values.get(key) as T) : make();
    this.#values.delete(key);
    this.#values.set(key, value);
    if (this.#values.size > this.#size) {
      const [oldest = ""] = this.#values.keys();
      this.#values.delete(oldest);
    }
    return value;
  }
}
