import { LRUCache } from "lru-cache";

/**
 * How long lists may take of one turn of the event loop before further ones wait, in milliseconds: a dozen short ones,
 * which waiting would make slower, also on a machine that has other work.
 */
const TOGETHER = 50;
/** A turn of the event loop that is shorter than this had nothing to do, in milliseconds. */
const IDLE = 0.1;

/** Begins a list; `end` is to be called once its response is made. */
type Begin = (end: () => void) => void;

/**
 * Lets lists begin in turn, so that those of one owner do not hold up everybody. On SQLite a list is found and made
 * within one turn of the event loop, which handles all that has arrived: with a dozen lists of 50 ms everybody waits for
 * most of a second. So once lists have taken 50 ms of a turn, further ones wait. A turn begins one of them, of the owner
 * whose lists took the least lately; after it everything else has as much time, unless there is nothing else to do. An
 * owner with more waiting lists than can be made soon is refused further ones. On PostgreSQL the event loop turns while a
 * list waits for the database, so a list counts nothing, and none waits.
 */
export class ListTurns {
  readonly #longest: number;
  readonly #now: () => number;
  readonly #times = new ListTimes();
  readonly #waiting = new Map<string, Begin[]>();
  /** Number of the present turn, and when it began. */
  #turn = 0;
  #turnBegan = 0;
  #endIsAwaited = false;
  /** What lists took of the present turn. */
  #taken = 0;

  /**
   * @param longest how long the waiting lists of one owner may take in all, in milliseconds; 0: any time
   * @param now the time in milliseconds, by a clock that never goes back
   */
  constructor(longest: number, now: () => number = () => performance.now()) {
    this.#longest = longest;
    this.#now = now;
  }

  /**
   * Begins a list, now or later. The first waiting list of an owner is never refused.
   * @returns false if the owner has too many waiting lists; then the list will not begin
   */
  begin(owner: string, list: Begin): boolean {
    this.#awaitEnd();
    const waiting = this.#waiting.get(owner);
    if (waiting === undefined && this.#taken < TOGETHER) this.#run(owner, list);
    else if (waiting === undefined) this.#waiting.set(owner, [list]);
    else if (this.#isTooLong((waiting.length + 1) * this.#times.expected(owner))) return false;
    else waiting.push(list);
    return true;
  }

  #isTooLong(milliseconds: number): boolean {
    return this.#longest > 0 && milliseconds > this.#longest;
  }

  #run(owner: string, list: Begin): void {
    const turn = this.#turn;
    const began = this.#now();
    list(() => {
      const ended = this.#now();
      // If the event loop has turned since, others were not held up.
      const taken = turn === this.#turn ? ended - began : 0;
      this.#times.add(owner, taken, ended);
      this.#taken += taken;
    });
  }

  #awaitEnd(): void {
    if (this.#endIsAwaited) return;
    this.#endIsAwaited = true;
    this.#turnBegan = this.#now();
    setImmediate(this.#endTurn);
  }

  readonly #endTurn = (): void => {
    const now = this.#now();
    const wasIdle = now - this.#turnBegan < IDLE;
    this.#turn += 1;
    this.#taken = 0;
    this.#endIsAwaited = false;
    if (this.#waiting.size === 0) return;
    this.#awaitEnd();
    const owner = this.#nextOwner(now, wasIdle);
    if (owner !== undefined) this.#runNext(owner);
  };

  /**
   * The waiting owner whose lists took the least lately; of owners alike, the one that has waited longest.
   * @param wasIdle whether those count too after whose last list not enough time has gone by
   */
  #nextOwner(now: number, wasIdle: boolean): string | undefined {
    let next: string | undefined;
    let least = Number.POSITIVE_INFINITY;
    for (const owner of this.#waiting.keys()) {
      const recent = this.#times.recent(owner, now);
      if (recent >= least || !(wasIdle || now >= this.#times.restedAt(owner))) continue;
      [next, least] = [owner, recent];
    }
    return next;
  }

  #runNext(owner: string): void {
    const waiting = this.#waiting.get(owner) ?? [];
    const list = waiting.shift();
    if (waiting.length === 0) this.#waiting.delete(owner);
    if (list !== undefined) this.#run(owner, list);
  }
}

/** Time after which a list counts half as much as at first, in milliseconds. */
const HALF_LIFE = 5_000;
/** How far the expectation moves toward each list. */
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
