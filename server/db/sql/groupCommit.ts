import { BusyError, isWriteConflict } from "../../errors.ts";
import type { SqlClient } from "./sql.ts";

/** A transaction that work shares. Statements run in the order in which they are sent. */
export interface SharedTransaction {
  readonly sql: SqlClient;
  /** Sends a statement about savepoints. */
  send(statement: string): void;
  /**
   * Waits for what was sent, and for what was left to the COMMIT.
   * @throws DriverAdapterError of the first that failed
   */
  settle(): Promise<void>;
  /** @throws DriverAdapterError nothing is committed, unless the connection was lost just then */
  commit(): Promise<void>;
  /** Undoes everything, and throws the cause, or what failed before it. */
  rollback(cause: unknown): Promise<never>;
}

/** What was sent to a database and is waited for later. */
export class Unsettled {
  #sent: Promise<unknown>[] = [];

  add(sent: Promise<unknown>): void {
    // Its error is thrown by `settle`.
    sent.catch(() => {});
    this.#sent.push(sent);
  }

  /** @throws the error of the first that failed, in the order in which they were sent */
  async settle(): Promise<void> {
    const sent = this.#sent;
    this.#sent = [];
    for (const one of sent) await one;
  }
}

/** Work that waits for its transaction. */
interface Job {
  readonly work: (tx: SqlClient) => Promise<unknown>;
  /** Whether it shall run beside no other transaction. */
  readonly alone: boolean;
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
}

/** Tells a job how it ended, once its transaction has been committed. */
type Outcome = () => void;

/** Jobs of one transaction at most: on SQLite, statements of other requests wait for as long as it lasts. */
const LARGEST = 64;
/** Jobs that may wait in a lane; the last of them waits for all the others. */
const WAITING = 2000;

/**
 * Runs work in transactions that it shares with other work, since beginning and committing one costs more than most
 * work: the COMMIT waits for the disk. Work of one lane that comes in one turn of the event loop, or while the lane's
 * transaction before runs, shares the next one. Each job sees the changes of those before it, so that they never
 * conflict; one that fails is undone by itself. Nobody learns how a job ended before the COMMIT.
 */
export class GroupCommit {
  readonly #begin: (alone: boolean) => Promise<SharedTransaction>;
  readonly #oneLane: boolean;
  /** The jobs that wait, by lane; a lane with none, while a transaction of it runs, has an empty list. */
  readonly #lanes = new Map<string, Job[]>();

  /**
   * @param begin begins a transaction; if alone, it waits until all open ones have ended, and no other begins
   * @param oneLane whether the database runs one transaction at a time anyway
   */
  constructor(begin: (alone: boolean) => Promise<SharedTransaction>, { oneLane = false } = {}) {
    this.#begin = begin;
    this.#oneLane = oneLane;
  }

  /**
   * Work that waits for anything but its own statements keeps its whole lane waiting.
   * @param key names the lane
   * @throws BusyError too many jobs wait already
   * @throws DriverAdapterError the database refuses a statement, or the COMMIT
   */
  run<T>(key: string, work: (tx: SqlClient) => Promise<T>, alone: boolean): Promise<T> {
    const lane = this.#oneLane ? "" : key;
    return new Promise((resolve, reject) => {
      const job: Job = { work, alone, resolve, reject };
      const waiting = this.#lanes.get(lane);
      if (waiting === undefined) {
        this.#lanes.set(lane, [job]);
        setImmediate(() => void this.#empty(lane));
      } else if (waiting.length < WAITING) waiting.push(job);
      else reject(new BusyError("too many changes wait, try again", { "Retry-After": "2" }));
    });
  }

  async #empty(lane: string): Promise<void> {
    for (let jobs = this.#next(lane); jobs.length > 0; jobs = this.#next(lane)) {
      await this.#commit(jobs);
      // A crowd must not keep the event loop for itself.
      await new Promise(setImmediate);
    }
    this.#lanes.delete(lane);
  }

  #next(lane: string): readonly Job[] {
    return this.#lanes.get(lane)?.splice(0, LARGEST) ?? [];
  }

  async #commit(jobs: readonly Job[]): Promise<void> {
    try {
      const transaction = await this.#begin(jobs.some(({ alone }) => alone));
      for (const settle of await runAll(transaction, jobs)) settle();
    } catch (error) {
      for (const { reject } of jobs) reject(error);
    }
  }
}

/** @throws DriverAdapterError, Error no job has changed anything */
async function runAll(transaction: SharedTransaction, jobs: readonly Job[]): Promise<Outcome[]> {
  try {
    const outcomes = jobs.length === 1 ? await runOnly(transaction, jobs) : await runEach(transaction, jobs);
    await transaction.commit();
    return outcomes;
  } catch (error) {
    return transaction.rollback(error);
  }
}

/** Jobs that need no savepoint: if one fails, nothing is left of the transaction. */
async function runOnly({ sql }: SharedTransaction, jobs: readonly Job[]): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const { work, resolve } of jobs) {
    const value = await work(sql);
    outcomes.push(() => resolve(value as never));
  }
  return outcomes;
}

/** Undoes what fails by itself. */
async function runEach(transaction: SharedTransaction, jobs: readonly Job[]): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  transaction.send("SAVEPOINT job");
  for (const { work, resolve, reject } of jobs) {
    try {
      const value = await work(transaction.sql);
      outcomes.push(() => resolve(value as never));
      transaction.send("RELEASE SAVEPOINT job; SAVEPOINT job");
    } catch (error) {
      // After a conflict, PostgreSQL commits nothing of the transaction any more.
      if (isWriteConflict(error)) throw error;
      outcomes.push(() => reject(error));
      transaction.send("ROLLBACK TO SAVEPOINT job");
      // Where that fails, the database has undone the whole transaction, as SQLite does when the disk is full.
      await transaction.settle();
    }
  }
  await transaction.settle();
  return outcomes;
}
