import { LRUCache } from "lru-cache";
import { type PieceTurns, pieceTurns } from "./pieces.ts";

/**
 * Maximum time, in milliseconds, that list requests may take in one turn of the event loop. After this time, further
 * list requests wait. A dozen short lists take less than this time even on a busy machine, so they do not wait.
 */
const TOGETHER = 50;
/** Time, in milliseconds, below which a turn of the event loop is treated as idle. */
const IDLE = 0.1;

/**
 * Maximum number of waiting lists of one owner. This limit is necessary because the expected time does not include
 * large lists. The service reads and builds a large list in several turns.
 */
const WAITING = 500;

/** Function that begins to handle a list request. It calls `end` after the response is complete. */
type Begin = (end: () => void) => void;

/**
 * Schedules list requests (short: lists), so that the lists of one owner do not delay all other requests. An owner is a
 * namespace or a user. On SQLite, the service reads and builds a list within one turn of the event loop, and one turn
 * handles all requests that have arrived. Without a schedule, a dozen lists of 50 ms would delay every other request
 * for more than half a second.
 *
 * When lists have taken 50 ms of a turn, further lists wait. Each later turn begins one waiting list of the owner whose
 * recent lists took the least time. After a list, the owner's next list waits for as long as the previous list took,
 * unless the event loop is idle. If the waiting lists of an owner would take too long, further lists of this owner are
 * refused.
 *
 * A large list takes several turns (see {@link PieceTurns}). Until it ends, further lists of its owner wait, so that
 * the service holds few large lists of one owner in memory.
 *
 * On PostgreSQL, the event loop continues while a list waits for the database. The list's time is therefore treated as
 * 0, and no list waits.
 */
export class ListTurns {
  readonly #longest: number;
  readonly #now: () => number;
  readonly #pieces: Pick<PieceTurns, "isWaiting">;
  readonly #times = new ListTimes();
  readonly #waiting = new Map<string, Begin[]>();
  /** Number and start time of the current turn. */
  #turn = 0;
  #turnBegan = 0;
  #endIsAwaited = false;
  /** Time that lists have taken in the current turn, in milliseconds. */
  #taken = 0;

  /**
   * Creates a scheduler.
   * @param longest maximum expected time of all waiting lists of one owner, in milliseconds; 0 means no limit
   * @param now returns the time of a monotonic clock, in milliseconds
   * @param pieces schedules the pieces of large lists. A piece is a group of items that is read or serialized in one
   *   turn of the event loop.
   */
  constructor(
    longest: number,
    now: () => number = () => performance.now(),
    pieces: Pick<PieceTurns, "isWaiting"> = pieceTurns,
  ) {
    this.#longest = longest;
    this.#now = now;
    this.#pieces = pieces;
  }

  /**
   * Begins a list now or later. The first waiting list of an owner is never refused.
   * @returns false if the list is refused because the owner has too many waiting lists
   */
  begin(owner: string, list: Begin): boolean {
    this.#awaitEnd();
    const waiting = this.#waiting.get(owner);
    const isReady = this.#taken < TOGETHER && !this.#pieces.isWaiting(owner);
    if (waiting === undefined && isReady) this.#run(owner, list);
    else if (waiting === undefined) this.#waiting.set(owner, [list]);
    else if (this.#isTooLong((waiting.length + 1) * this.#times.expected(owner))) return false;
    else if (this.#longest > 0 && waiting.length >= WAITING) return false;
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
      // Treat the time of a list that ended in a later turn as 0, because the list delayed no other request.
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
   * Returns the waiting owner whose recent lists took the least time. If several owners have the same time, returns the
   * owner that has waited longest.
   * @param wasIdle true to include owners that are still in the pause after their last list
   */
  #nextOwner(now: number, wasIdle: boolean): string | undefined {
    let next: string | undefined;
    let least = Number.POSITIVE_INFINITY;
    for (const owner of this.#waiting.keys()) {
      const recent = this.#times.recent(owner, now);
      if (this.#pieces.isWaiting(owner)) continue;
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

/** Half-life, in milliseconds, of the weight of a list request's time. */
const HALF_LIFE = 5_000;
/** Weight of each new list in the moving average of list times. */
const STEP = 1 / 16;
/** Maximum number of owners whose list times are stored. */
const REMEMBERED = 10_000;

/** The times of one owner at the end of the owner's last list, in milliseconds. */
interface Figures {
  readonly endedAt: number;
  readonly last: number;
  readonly sum: number;
  readonly expected: number;
}

const NONE: Figures = { endedAt: Number.NEGATIVE_INFINITY, last: 0, sum: 0, expected: 0 };

/**
 * Tracks how much event-loop time the recent list requests of each owner took. All times are in milliseconds, from a
 * monotonic clock.
 */
export class ListTimes {
  readonly #figures = new LRUCache<string, Figures>({ max: REMEMBERED });

  /** Adds the time of a list request that has just ended. */
  add(owner: string, milliseconds: number, now: number): void {
    const expected = this.expected(owner);
    this.#figures.set(owner, {
      endedAt: now,
      last: milliseconds,
      sum: this.recent(owner, now) + milliseconds,
      expected: expected + STEP * (milliseconds - expected),
    });
  }

  /**
   * Returns the weighted sum of the times of the owner's recent lists. The weight of a list halves every five
   * seconds.
   */
  recent(owner: string, now: number): number {
    const { sum, endedAt } = this.#of(owner);
    return sum * 0.5 ** ((now - endedAt) / HALF_LIFE);
  }

  /**
   * Returns the expected time of the owner's next list. It is a moving average of the times of the owner's last lists,
   * starting at 0. A single slow list, such as the first list after a start, has little weight.
   */
  expected(owner: string): number {
    return this.#of(owner).expected;
  }

  /** Returns the end time of the owner's pause. The pause after a list is as long as the list took. */
  restedAt(owner: string): number {
    const { endedAt, last } = this.#of(owner);
    return endedAt + last;
  }

  #of(owner: string): Figures {
    return this.#figures.get(owner) ?? NONE;
  }
}
