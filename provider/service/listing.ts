import type { Page } from "@gatehouse-access/sdk";
import { undefinedIfMissing } from "./missingObject.ts";

/** Where a {@link Listing} reads from. */
export interface Source<T> {
  /** Names under which an object can be found; the first is its id. */
  keysOf(item: T): readonly string[];
  /** All objects, in pages of {@link PAGE_SIZE} and in an order that does not change while they are read. */
  pages(): AsyncIterator<Page<T>>;
  /** The object of this name, by a request of its own; undefined, or a NotFoundError, when there is none. */
  look(key: string): Promise<T | undefined>;
  /**
   * Which of two objects the name that they share means; undefined for neither, so that {@link look} decides.
   * @default the first
   */
  prefer?(left: T, right: T): T | undefined;
  /** Rejects when the namespace of the objects cannot be read: then nothing is known of them. */
  requireReadable?(): Promise<unknown>;
}

/** Objects on a page of a list. */
export const PAGE_SIZE = 100;

/** Milliseconds in which reads are gathered, before it is decided whether to list all objects. */
const WINDOW = 20;
/** Up to so many reads are answered one by one, without asking how long the list is. */
const FEW = 5;
/** A run that asks for n objects will ask for more, so the list may cost this many times n requests. */
const EXPECTED = 4;

/**
 * Objects of one kind in a namespace, for all resources of a run. A few are read one by one, many by listing all of
 * them: 5 of 100,000 are 5 requests, 1,000 of 1,000 are 10. An object that is not in the list is looked for by itself
 * too, since pages shift while objects come and go.
 */
export class Listing<T> {
  readonly #source: Source<T>;
  readonly #found = new Map<string, Promise<T | undefined>>();
  #waiting = new Map<string, PromiseWithResolvers<T | undefined>>();
  #all: Promise<ReadonlyMap<string, T | undefined>> | undefined;
  /** A list whose first page was read, to see how long it is. */
  #begun: Begun<T> | undefined;
  #asked = 0;

  constructor(source: Source<T>) {
    this.#source = source;
  }

  /** The object of this name, as the run knows it or as the service says; undefined when there is none. */
  find(key: string): Promise<T | undefined> {
    const known = this.#found.get(key);
    if (known) return known;
    const answer = this.#all ? this.#fromAll(this.#all, key) : this.#gather(key);
    this.#remember(key, answer);
    return answer;
  }

  /** All objects. */
  async all(): Promise<T[]> {
    const all = await this.#listOnce();
    return [...new Set(all.values())].filter((item) => item !== undefined);
  }

  /** Takes an object as it is after a write, so that a later read does not ask for it. */
  put(item: T): void {
    for (const key of this.#source.keysOf(item)) this.#found.set(key, Promise.resolve(item));
  }

  /** Forgets all that was read, so that the next read asks the service. */
  forget(): void {
    this.#found.clear();
    this.#all = undefined;
    this.#begun = undefined;
  }

  /** Takes note that an object was removed, given by itself or by one of its names. */
  drop(removed: string | T): void {
    const keys = typeof removed === "string" ? [removed] : this.#source.keysOf(removed);
    for (const key of keys) this.#found.set(key, Promise.resolve(undefined));
  }

  // A failure is forgotten, so that the next read tries again.
  #remember(key: string, answer: Promise<T | undefined>): void {
    this.#found.set(key, answer);
    answer.catch(() => {
      if (this.#found.get(key) === answer) this.#found.delete(key);
    });
  }

  #gather(key: string): Promise<T | undefined> {
    // Somebody may wait for this name already: `forget` does not end the reads that are being gathered.
    const known = this.#waiting.get(key);
    if (known) return known.promise;
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
      for (const [key, { resolve }] of batch) resolve(all ? this.#fromAll(all, key) : this.#look(key));
    } catch (error) {
      for (const { reject } of batch.values()) reject(error);
    }
  }

  async #listIsCheaper(): Promise<boolean> {
    if (this.#all) return true;
    if (this.#asked <= FEW) return false;
    const { total } = await this.#begin().first;
    // A server that does not say how long its lists are has no cheaper way to single objects.
    return total === undefined || Math.ceil(total / PAGE_SIZE) <= this.#asked * EXPECTED;
  }

  #begin(): Begun<T> {
    if (!this.#begun) {
      const pages = this.#source.pages();
      const begun = { pages, first: pages.next().then(pageOf) };
      this.#begun = begun;
      begun.first.catch(() => {
        if (this.#begun === begun) this.#begun = undefined;
      });
    }
    return this.#begun;
  }

  #listOnce(): Promise<ReadonlyMap<string, T | undefined>> {
    if (!this.#all) {
      const all = this.#list();
      this.#all = all;
      all.catch(() => {
        if (this.#all === all) this.#all = undefined;
      });
    }
    return this.#all;
  }

  async #list(): Promise<ReadonlyMap<string, T | undefined>> {
    const found = new Map<string, T | undefined>();
    const { pages, first } = this.#begin();
    this.#begun = undefined;
    this.#add(found, (await first).items);
    for (let next = await pages.next(); !next.done; next = await pages.next()) {
      this.#add(found, next.value.items);
    }
    return found;
  }

  #add(found: Map<string, T | undefined>, items: readonly T[]): void {
    const prefer = this.#source.prefer ?? ((left: T) => left);
    for (const item of items) {
      for (const key of this.#source.keysOf(item)) {
        const other = found.get(key);
        if (other !== undefined) found.set(key, prefer(other, item));
        else if (!found.has(key)) found.set(key, item);
      }
    }
  }

  async #fromAll(
    all: ReadonlyMap<string, T | undefined> | Promise<ReadonlyMap<string, T | undefined>>,
    key: string,
  ): Promise<T | undefined> {
    return (await all).get(key) ?? this.#look(key);
  }

  #look(key: string): Promise<T | undefined> {
    return undefinedIfMissing(this.#source.look(key), async () => {
      await this.#source.requireReadable?.();
      return (await this.#listOnce()).has(key);
    });
  }
}

interface Begun<T> {
  readonly pages: AsyncIterator<Page<T>>;
  readonly first: Promise<Page<T>>;
}

const pageOf = <T>({ value, done }: IteratorResult<Page<T>>): Page<T> =>
  done ? { items: [], total: 0 } : value;
