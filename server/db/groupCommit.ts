import type { SqlDriverAdapter, Transaction } from "@prisma/driver-adapter-utils";
import { directClient, type SqlClient } from "./readRows.ts";

/** Work that waits for the next transaction. */
interface Job {
  readonly work: (tx: SqlClient) => Promise<unknown>;
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
}

/** Settles a job, once its transaction has been committed. */
type Outcome = () => void;

/** Jobs of one transaction at most: statements of other requests wait for as long as it lasts. */
const LARGEST = 64;

/**
 * Runs work on SQLite, which has one transaction at a time. All work that comes in one turn of the event loop shares a
 * transaction, since its COMMIT, which waits for the disk, costs more than the statements. Each job sees the changes of
 * those before it; one that fails is undone by itself. Nobody learns how a job ended before the COMMIT.
 */
export class GroupCommit {
  readonly #adapter: SqlDriverAdapter;
  #waiting: Job[] = [];

  constructor(adapter: SqlDriverAdapter) {
    this.#adapter = adapter;
  }

  /**
   * Work that waits for anything but its own statements keeps the whole database waiting.
   * @throws DriverAdapterError the database refuses a statement, or the COMMIT
   */
  run<T>(work: (tx: SqlClient) => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ work, resolve, reject });
      if (this.#waiting.length === 1) setImmediate(() => void this.#commit());
    });
  }

  async #commit(): Promise<void> {
    let jobs: readonly Job[] = [];
    try {
      const transaction = await this.#adapter.startTransaction();
      // With those that came while others had the turn.
      jobs = this.#next();
      for (const settle of await runAll(transaction, jobs)) settle();
    } catch (error) {
      for (const { reject } of jobs.length > 0 ? jobs : this.#next()) reject(error);
    }
  }

  #next(): readonly Job[] {
    const jobs = this.#waiting.splice(0, LARGEST);
    if (this.#waiting.length > 0) setImmediate(() => void this.#commit());
    return jobs;
  }
}

/** @throws DriverAdapterError no job has changed anything */
async function runAll(transaction: Transaction, jobs: readonly Job[]): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  try {
    for (const job of jobs) outcomes.push(await runOne(transaction, job));
    await transaction.commit();
  } catch (error) {
    await transaction.rollback();
    throw error;
  }
  return outcomes;
}

const SAVEPOINT = "job";

/** @throws DriverAdapterError SQLite has undone the whole transaction, as it does where the disk is full */
async function runOne(transaction: Transaction, { work, resolve, reject }: Job): Promise<Outcome> {
  await transaction.createSavepoint?.(SAVEPOINT);
  try {
    const value = await work(directClient(transaction));
    await transaction.releaseSavepoint?.(SAVEPOINT);
    return () => resolve(value as never);
  } catch (error) {
    await transaction.rollbackToSavepoint?.(SAVEPOINT).catch(() => {
      throw error;
    });
    await transaction.releaseSavepoint?.(SAVEPOINT);
    return () => reject(error);
  }
}
