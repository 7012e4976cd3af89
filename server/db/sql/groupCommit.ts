import { BusyError, isWriteConflict } from "../../errors.ts";
import type { SqlClient } from "./sql.ts";

/** A transaction that several jobs share. Statements run in the order in which they are sent. */
export interface SharedTransaction {
  readonly sql: SqlClient;
  /** Sends a savepoint statement. */
  send(statement: string): void;
  /**
   * Waits for all statements that were sent. These include statements that no job waits for before the COMMIT.
   * @throws DriverAdapterError the error of the first statement that failed
   */
  settle(): Promise<void>;
  /**
   * Commits the transaction.
   * @throws DriverAdapterError the COMMIT failed. The transaction is not committed, unless the connection was lost
   * during the COMMIT.
   */
  commit(): Promise<void>;
  /**
   * Undoes all changes of the transaction. Always throws an error: the first error of the transaction, or `cause` if no
   * statement failed.
   */
  rollback(cause: unknown): Promise<never>;
}

/** Statements that were sent to a database and are awaited later. */
export class Unsettled {
  #sent: Promise<unknown>[] = [];

  add(sent: Promise<unknown>): void {
    // `settle` throws the statement's error, so the error is ignored here.
    sent.catch(() => {});
    this.#sent.push(sent);
  }

  /**
   * Waits for all statements.
   * @throws the error of the first failed statement. Statements are checked in the order in which they were sent.
   */
  async settle(): Promise<void> {
    const sent = this.#sent;
    this.#sent = [];
    for (const statement of sent) await statement;
  }
}

/** A job that waits for its transaction. */
interface Job {
  readonly work: (tx: SqlClient) => Promise<unknown>;
  /** True if the job's transaction must run exclusively, without any concurrent transaction. */
  readonly alone: boolean;
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
}

/** Resolves or rejects a job's promise. Called after the job's transaction was committed. */
type Settlement = () => void;

/**
 * Maximum number of jobs in one transaction. On SQLite, statements of other requests wait until the transaction ends.
 */
const LARGEST = 64;
/** Maximum number of jobs that wait in one lane (see {@link GroupCommit}). The last job waits for all earlier jobs. */
const WAITING = 2000;

/**
 * Runs jobs in shared transactions. Beginning and committing a transaction costs more than most jobs, because the
 * COMMIT waits for the disk. Each job belongs to a lane, which is a named queue. Jobs of one lane share the next
 * transaction if they arrive in one turn of the event loop, or during the lane's previous transaction. Each job reads
 * the changes of earlier jobs, so jobs of one transaction never conflict. If a job fails, only the changes of that job
 * are undone. No caller receives a result before the COMMIT.
 */
export class GroupCommit {
  readonly #begin: (alone: boolean) => Promise<SharedTransaction>;
  readonly #oneLane: boolean;
  /** The waiting jobs, by lane. A lane with an empty list has a transaction in progress but no waiting jobs. */
  readonly #lanes = new Map<string, Job[]>();

  /**
   * Creates a group commit for a database.
   * @param begin begins a transaction. With `alone`, the new transaction waits until all open transactions have ended,
   *   and later transactions wait until the new transaction has ended.
   * @param oneLane true to use one lane for all jobs, because the database runs only one transaction at a time
   */
  constructor(begin: (alone: boolean) => Promise<SharedTransaction>, { oneLane = false } = {}) {
    this.#begin = begin;
    this.#oneLane = oneLane;
  }

  /**
   * Runs a job in a shared transaction of its lane. The job must wait only for its own statements. A job that waits for
   * anything else delays all jobs of the lane.
   * @param key name of the lane
   * @throws BusyError too many jobs are already waiting
   * @throws DriverAdapterError the database rejects a statement or the COMMIT
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
      else reject(new BusyError("too many changes are waiting; try again", { "Retry-After": "2" }));
    });
  }

  async #empty(lane: string): Promise<void> {
    for (let jobs = this.#next(lane); jobs.length > 0; jobs = this.#next(lane)) {
      await this.#commit(jobs);
      // The event loop handles other events between two transactions, so that many waiting jobs do not block it.
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

/**
 * Runs all jobs and commits the transaction.
 * @throws DriverAdapterError, Error the transaction failed; the database contains no changes of any job
 */
async function runAll(transaction: SharedTransaction, jobs: readonly Job[]): Promise<Settlement[]> {
  try {
    const settlements =
      jobs.length === 1 ? await runOnly(transaction, jobs) : await runEach(transaction, jobs);
    await transaction.commit();
    return settlements;
  } catch (error) {
    return transaction.rollback(error);
  }
}

/** Runs jobs without savepoints. If a job fails, the whole transaction is undone. */
async function runOnly({ sql }: SharedTransaction, jobs: readonly Job[]): Promise<Settlement[]> {
  const settlements: Settlement[] = [];
  for (const { work, resolve } of jobs) {
    const value = await work(sql);
    settlements.push(() => resolve(value as never));
  }
  return settlements;
}

/** Runs jobs with savepoints. If a job fails, only the changes of that job are undone. */
async function runEach(transaction: SharedTransaction, jobs: readonly Job[]): Promise<Settlement[]> {
  const settlements: Settlement[] = [];
  transaction.send("SAVEPOINT job");
  for (const { work, resolve, reject } of jobs) {
    try {
      const value = await work(transaction.sql);
      settlements.push(() => resolve(value as never));
      transaction.send("RELEASE SAVEPOINT job; SAVEPOINT job");
    } catch (error) {
      // After a serialization conflict, PostgreSQL cannot commit any part of the transaction.
      if (isWriteConflict(error)) throw error;
      settlements.push(() => reject(error));
      transaction.send("ROLLBACK TO SAVEPOINT job");
      // If this rollback fails, the database has undone the whole transaction. SQLite does so when the disk is full.
      await transaction.settle();
    }
  }
  await transaction.settle();
  return settlements;
}
