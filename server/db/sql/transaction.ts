import { setTimeout as wait } from "node:timers/promises";
import { isWriteConflict } from "../../errors.ts";
import type { Prisma, PrismaClient } from "../generated/sqlite/client.ts";
import type { GroupCommit } from "./groupCommit.ts";
import type { SqlClient } from "./sql.ts";
import { passGate } from "./transactionGate.ts";

/** The client of an open transaction. */
export type Transaction = Prisma.TransactionClient;

/**
 * Number of attempts in which a transaction runs concurrently with other transactions. Later attempts run exclusively,
 * so that no other transaction conflicts with them. Under load, all concurrent attempts may fail, because PostgreSQL
 * detects a conflict even if two transactions only use the same index page.
 */
const TOGETHER = 2;

/** Clients of the open transactions. */
const open = new WeakSet<object>();

/** An object with a database client, such as the services. */
type With<Db> = { readonly db: Db };

/**
 * Returns the services for work inside a transaction. The `db` of the returned services is the client of the
 * transaction.
 */
export function within<S extends With<PrismaClient>>(services: S, tx: Transaction): S;
export function within<S extends With<SqlClient>>(
  services: S,
  tx: SqlClient,
): Omit<S, "db"> & With<SqlClient>;
export function within(services: With<SqlClient>, tx: SqlClient): object {
  open.add(tx);
  return { ...services, db: tx };
}

/** Returns true if the services belong to an open transaction. */
export const isInTransaction = (services: With<SqlClient>): boolean => open.has(services.db);

/**
 * Runs work in one serializable transaction. Data that the work reads cannot change before the work writes. The work
 * may run more than once, so it must not change anything outside the transaction. If the services already belong to an
 * open transaction, the work becomes part of that transaction.
 */
export async function inTransaction<T>(
  services: With<PrismaClient>,
  work: (tx: Transaction) => Promise<T>,
): Promise<T> {
  if (isInTransaction(services)) return work(services.db);
  return retryConflicts((attempt) => begin(services, work, attempt > TOGETHER));
}

/**
 * The group commit for the database of each client. A group commit bypasses the client, because the client takes ten
 * times as long as the statements.
 */
const direct = new WeakMap<object, GroupCommit>();

/**
 * Registers the group commit for the database of a client. {@link inSqlTransaction} then uses the group commit instead
 * of the client.
 */
export function writeDirectly(client: object, groups: GroupCommit): void {
  direct.set(client, groups);
}

/**
 * Runs work that uses only SQL in a transaction, like {@link inTransaction}. The transaction may be shared with other
 * work, so the work must wait only for its own statements.
 * @param lane name of a queue. Jobs in the same lane share transactions, and never conflict with each other.
 */
export async function inSqlTransaction<T>(
  services: With<PrismaClient>,
  lane: string,
  work: (tx: SqlClient) => Promise<T>,
): Promise<T> {
  const groups = direct.get(services.db);
  if (groups === undefined) return inTransaction(services, work);
  return retryConflicts((attempt) => groups.run(lane, work, attempt > TOGETHER));
}

function begin<T>(
  { db }: With<PrismaClient>,
  work: (tx: Transaction) => Promise<T>,
  alone: boolean,
): Promise<T> {
  const run = async (tx: Transaction) => {
    await passGate(db, tx, alone);
    return work(tx);
  };
  return db.$transaction(run, { isolationLevel: "Serializable", maxWait: 20_000, timeout: 20_000 });
}

/** Maximum number of attempts to run a transaction that conflicts with other transactions. */
const ATTEMPTS = 12;
/**
 * Maximum delay before the second attempt, in milliseconds. The maximum doubles with each attempt, up to
 * `LONGEST_WAIT`.
 */
const FIRST_WAIT = 4;
const LONGEST_WAIT = 400;

/**
 * Runs a transaction, and retries it after a conflict with another transaction. Also use this function for a single
 * statement that changes several rows. PostgreSQL locks the rows in the order in which it finds them, so two such
 * statements can deadlock.
 * @param run runs the transaction; receives the number of the attempt, starting with 1
 */
export async function retryConflicts<T>(run: (attempt: number) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await run(attempt);
    } catch (error) {
      if (attempt === ATTEMPTS || !isWriteConflict(error)) throw error;
      // The delay is random, so that two transactions that conflicted do not retry at the same time.
      await wait(Math.random() * Math.min(FIRST_WAIT * 2 ** (attempt - 1), LONGEST_WAIT));
    }
  }
}
