import { LRUCache } from "lru-cache";

/** Time after which a list counts half as much as at first, in milliseconds. */
const HALF_LIFE = 5_000;
/** How far the expectation moves towards each list. */
const STEP = 1 / 16;
/** Maximum number of owners remembered. */
const REMEMBERED = 10_000;

/** The figures of one owner, in milliseconds, as of the end of its last list. */
interface Figures {
  readonly endedAt: number;
  readonly last: number;
  readonly sum: number;
  readonly expected: number;
}

const NONE: Figures = { endedAt: Number.NEGATIVE_INFINITY, last: 0, sum: 0, expected: 0 };

/**
 * What the lists of each owner took of the event loop lately. Times are in milliseconds, of a clock that never goes
 * back.
 */
export class ListTimes {
  readonly #figures = new LRUCache<string, Figures>({ max: REMEMBERED });

  /** Adds a list that has just ended. */
  add(owner: string, milliseconds: number, now: number): void {
    const expected = this.expected(owner);
    this.#figures.set(owner, {
      endedAt: now,
      last: milliseconds,
      sum: this.recent(owner, now) + milliseconds,
      expected: expected + STEP * (milliseconds - expected),
    });
  }

  /** What the owner's lists took lately: the sum of their times, which halves every five seconds. */
  recent(owner: string, now: number): number {
    const { sum, endedAt } = this.#of(owner);
    return sum * 0.5 ** ((now - endedAt) / HALF_LIFE);
  }

  /**
   * What the owner's next list may take: a mean of the last ones that begins at 0, so that a slow one among others, such
   * as the first one after a start, counts little.
   */
  expected(owner: string): number {
    return this.#of(owner).expected;
  }

  /** When the owner has been without a list for as long as its last one took. */
  restedAt(owner: string): number {
    const { endedAt, last } = this.#of(owner);
    return endedAt + last;
  }

  #of(owner: string): Figures {
    return this.#figures.get(owner) ?? NONE;
  }
}
