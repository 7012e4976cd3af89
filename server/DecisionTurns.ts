/** Maximum time, in milliseconds, that decisions may take in one turn of the event loop. */
const SLICE = 3;
/** Maximum number of waiting and running decisions for each owner. */
const WAITING = 200;

/**
 * A decision that yields after each step, so that other work can run. Most steps take much less than a millisecond.
 */
export type Decision<T> = Generator<void, T, void>;

interface Job {
  /** Runs steps of the decision until the given time. Returns true if the decision has ended. */
  advance(until: number): boolean;
}

/**
 * Runs decisions whose cost a tenant controls, such as the evaluation of a namespace's firewall rules, with little
 * delay for other requests. In each turn of the event loop, decisions run for a few milliseconds. If decisions of
 * several owners wait, the owners take turns. An owner is a namespace, or one group of a namespace's decisions.
 */
export class DecisionTurns {
  readonly #busy: () => Error;
  readonly #now: () => number;
  /** The decisions of each owner. The owner whose turn is next comes first. */
  readonly #jobs = new Map<string, Job[]>();
  #isAwaited = false;
  /**
   * Time, in milliseconds, that decisions have taken in this turn, plus the time by which earlier turns exceeded the
   * maximum. After a long step, no decision runs for several turns, so that other work can run.
   */
  #taken = 0;

  /**
   * @param busy returns the error with which a decision is rejected if too many decisions of its owner wait
   * @param now returns the time of a monotonic clock, in milliseconds
   */
  constructor(busy: () => Error, now: () => number = () => performance.now()) {
    this.#busy = busy;
    this.#now = now;
  }

  /**
   * Runs a decision after all earlier decisions of the owner.
   * @returns the result of the decision; the promise rejects with the error of the decision
   * @throws the error that `busy` returns: too many decisions of the owner wait
   */
  run<T>(owner: string, decision: Decision<T>): Promise<T> {
    const jobs = this.#jobs.get(owner) ?? [];
    if (jobs.length >= WAITING) throw this.#busy();
    return new Promise<T>((resolve, reject) => {
      jobs.push({ advance: (until) => this.#advance(decision, until, resolve, reject) });
      this.#jobs.set(owner, jobs);
      // Most decisions take less than a millisecond, so they can finish in this turn of the event loop.
      if (this.#jobs.size === 1 && jobs.length === 1) this.#runSlice();
      this.#awaitNextTurn();
    });
  }

  #advance<T>(
    decision: Decision<T>,
    until: number,
    resolve: (result: T) => void,
    reject: (error: unknown) => void,
  ): boolean {
    try {
      do {
        const { done, value } = decision.next();
        if (!done) continue;
        resolve(value);
        return true;
      } while (this.#now() < until);
      return false;
    } catch (error) {
      reject(error);
      return true;
    }
  }

  #awaitNextTurn(): void {
    if (this.#isAwaited) return;
    this.#isAwaited = true;
    setImmediate(() => {
      this.#isAwaited = false;
      this.#taken = Math.max(0, this.#taken - SLICE);
      this.#runSlice();
      if (this.#jobs.size > 0) this.#awaitNextTurn();
    });
  }

  /** Runs decisions, one of each owner in turn, until the time slice is used up. */
  #runSlice(): void {
    while (this.#jobs.size > 0 && this.#taken < SLICE) {
      const [[owner, jobs] = ["", []]] = this.#jobs;
      const [job] = jobs;
      const began = this.#now();
      const hasEnded = job?.advance(began + SLICE - this.#taken) ?? true;
      this.#taken += this.#now() - began;
      if (hasEnded) jobs.shift();
      // Move the owner to the end of the list.
      this.#jobs.delete(owner);
      if (jobs.length > 0) this.#jobs.set(owner, jobs);
    }
  }
}
