/** One page of a list, and how many objects the list has in all. */
export interface Page<T> {
  readonly items: readonly T[];
  readonly total: number;
}

/** Where a {@link Listing} reads from. */
export interface Source<T> {
  /** Names that an object can be asked for by; the first is its id. */
  keysOf(item: T): readonly string[];
  /** A page, from 1, of {@link PAGE_SIZE} objects in an order that does not move while pages are read. */
  page(page: number): Promise<Page<T>>;
  /** The object of this name, by a request of its own; undefined when there is none. */
  look(key: string): Promise<T | undefined>;
  /** Which of two objects of one name is meant. Default: the first listed. */
  prefer?(left: T, right: T): T;
}

export const PAGE_SIZE = 100;

/** Milliseconds in which reads are gathered before it is decided how to answer them. */
const WINDOW = 20;
/** So many reads are answered one by one without asking how long the list is. */
const FEW = 5;
/** A run that asked for n objects at once will ask for more: the list may cost this many times n requests. */
const EXPECTED = 4;

/**
 * Objects of one kind in a namespace, for all resources of a run. Few are read one by one, many by listing all:
 * 5 of 100,000 are 5 requests, 1,000 of 1,000 are 10. Absence in a list counts only after a second look, since
 * pages shift while objects come and go.
 */
export class Listing<T> {
  readonly #source: Source<T>;
  readonly #found = new Map<string, Promise<T | undefined>>();
  #waiting = new Map<string, PromiseWithResolvers<T | undefined>>();
  #all: Promise<Map<string, T>> | undefined;
  #firstPage: Promise<Page<T>> | undefined;
  #asked = 0;

  constructor(source: Source<T>) {
    this.#source = source;
  }

  /** The object of this name; undefined when there is none. Answers of one run may come from one list. */
  find(key: string): Promise<T | undefined> {
    const known = this.#found.get(key);
    if (known) return known;
    const answer = this.#all ? this.#fromAll(this.#all, key) : this.#gather(key);
    this.#remember(key, answer);
    return answer;
  }

  /** Every object. */
  async all(): Promise<T[]> {
    const all = await this.#listOnce();
    return [...new Set(all.values())];
  }

  /** Call after a write with what is there now, so that a later read need not ask. */
  put(item: T): void {
    for (const key of this.#source.keysOf(item)) this.#found.set(key, Promise.resolve(item));
  }

  /** Call when what was read may no longer be true. */
  forget(): void {
    this.#found.clear();
    this.#all = undefined;
    this.#firstPage = undefined;
  }

  /** Call after a removal. */
  drop(key: string): void {
    this.#found.set(key, Promise.resolve(undefined));
  }

  // What failed is not kept: the next read tries again.
  #remember(key: string, answer: Promise<T | undefined>): void {
    this.#found.set(key, answer);
    answer.catch(() => {
      if (this.#found.get(key) === answer) this.#found.delete(key);
    });
  }

  #gather(key: string): Promise<T | undefined> {
    if (this.#waiting.size === 0) setTimeout(() => void this.#answer(), WINDOW);
    const waiting = Promise.withResolvers<T | undefined>();
    this.#waiting.set(key, waiting);
    return waiting.promise;
  }

  async #answer(): Promise<void> {
    const batch = this.#waiting;
    this.#waiting = new Map();
    this.#asked += batch.size;
    try {
      const all = (await this.#listIsCheaper()) ? await this.#listOnce() : undefined;
      for (const [key, { resolve }] of batch) resolve(all ? this.#fromAll(all, key) : this.#source.look(key));
    } catch (error) {
      for (const { reject } of batch.values()) reject(error);
    }
  }

  async #listIsCheaper(): Promise<boolean> {
    if (this.#asked <= FEW) return false;
    this.#firstPage ??= this.#source.page(1);
    const { total } = await this.#keepUnlessFailed(this.#firstPage);
    return Math.ceil(total / PAGE_SIZE) <= this.#asked * EXPECTED;
  }

  async #keepUnlessFailed(page: Promise<Page<T>>): Promise<Page<T>> {
    try {
      return await page;
    } catch (error) {
      if (this.#firstPage === page) this.#firstPage = undefined;
      throw error;
    }
  }

  #listOnce(): Promise<Map<string, T>> {
    if (!this.#all) {
      const all = this.#list();
      this.#all = all;
      all.catch(() => {
        if (this.#all === all) this.#all = undefined;
      });
    }
    return this.#all;
  }

  async #list(): Promise<Map<string, T>> {
    const found = new Map<string, T>();
    const first = await (this.#firstPage ?? this.#source.page(1));
    this.#firstPage = undefined;
    this.#add(found, first.items);
    for (let page = 2; page <= Math.ceil(first.total / PAGE_SIZE); page += 1) {
      this.#add(found, (await this.#source.page(page)).items);
    }
    return found;
  }

  #add(found: Map<string, T>, items: readonly T[]): void {
    const prefer = this.#source.prefer ?? ((left: T) => left);
    for (const item of items) {
      for (const key of this.#source.keysOf(item)) {
        const other = found.get(key);
        found.set(key, other === undefined ? item : prefer(other, item));
      }
    }
  }

  async #fromAll(all: Map<string, T> | Promise<Map<string, T>>, key: string): Promise<T | undefined> {
    return (await all).get(key) ?? this.#source.look(key);
  }
}
