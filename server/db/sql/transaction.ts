import { setTimeout as wait } from "node:timers/promises";
import { isWriteConflict } from "../../errors.ts";
import type { Prisma, PrismaClient } from "../generated/sqlite/client.ts";
import type { GroupCommit } from "./groupCommit.ts";
import type { SqlClient } from "./sql.ts";
import { passGate } from "./transactionGate.ts";

/** The client of an open transaction. */
export type Transaction = Prisma.TransactionClient;

/**
 * Number of attempts for which a transaction runs concurrently with other transactions. Later attempts run exclusively,
 * so that no other transaction conflicts with them. PostgreSQL detects a conflict even if two transactions only touch
 * the same index page, so under load all concurrent attempts may fail.
 */
const TOGETHER = 2;

/** Clients of the open transactions. */
const open = new WeakSet<object>();

/** An object with a client of the database, such as the services. */
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

/** Returns true for services inside a transaction. */
export const isInTransaction = (services: With<SqlClient>): boolean => open.has(services.db);

/**
 * Runs work in one serializable transaction, so that the data that the work has checked cannot change before the work
 * writes. The work may run more than once, so it must not change anything outside the transaction. If the services are
 * already inside a transaction, the work becomes part of that transaction.
 */
export async function inTransaction<T>(
  services: With<PrismaClient>,
  work: (tx: Transaction) => Promise<T>,
): Promise<T> {
  if (isInTransaction(services)) return work(services.db);
  return retryConflicts((attempt) => begin(services, work, attempt > TOGETHER));
}

/**
 * The group commit of each client's database. A group commit bypasses the client, because the client takes ten times as
 * long as the statements.
 */
const direct = new WeakMap<object, GroupCommit>();

/**
 * Registers the group commit of a client's database, which {@link inSqlTransaction} then uses instead of the client.
 */
export function writeDirectly(client: object, groups: GroupCommit): void {
  direct.set(client, groups);
}

/**
 * Runs work that uses only SQL in a transaction, like {@link inTransaction}. Other work may share the transaction, so
 * the work must wait only for its own statements.
 * @param lane name of a queue. Work of the same lane shares transactions, and never conflicts with each other
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
 * Maximum wait before the second attempt, in milliseconds. The maximum doubles with each attempt, up to `LONGEST_WAIT`.
 */
const FIRST_WAIT = 4;
const LONGEST_WAIT = 400;

/**
 * Runs a transaction, and repeats it after a conflict with another transaction. Use it for a single statement that
 * changes several rows too: PostgreSQL locks the rows in the order in which it finds them, so two such statements can
 * deadlock.
 * @param run runs the transaction; receives the number of the attempt, from 1
 */
export async function retryConflicts<T>(run: (attempt: number) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await run(attempt);
    } catch (error) {
      if (attempt === ATTEMPTS || !isWriteConflict(error)) throw error;
      // The wait is random, so that two transactions that conflicted do not retry at the same time.
      await wait(Math.random() * Math.min(FIRST_WAIT * 2 ** (attempt - 1), LONGEST_WAIT));
    }
  }
}
