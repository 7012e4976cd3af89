import { setTimeout as wait } from "node:timers/promises";
import { isWriteConflict } from "../errors.ts";
import type { Services } from "../services.ts";
import type { Prisma } from "./generated/sqlite/client.ts";
import type { GroupCommit } from "./groupCommit.ts";
import type { SqlClient } from "./readRows.ts";
import { passGate } from "./transactionGate.ts";

/** The client of an open transaction. */
export type Transaction = Prisma.TransactionClient;

/** Attempts at a transaction that conflicts with others. */
const ATTEMPTS = 12;
/**
 * Attempts that run beside other transactions; later ones run alone, and conflict with no other. PostgreSQL sees a
 * conflict even where two transactions only touch the same page of an index, so under load all of these may fail.
 */
const TOGETHER = 2;
/** Longest wait before the second attempt, in milliseconds; it doubles with each attempt. */
const FIRST_WAIT = 4;
const LONGEST_WAIT = 400;

/** Clients of the transactions that are open. */
const open = new WeakSet<object>();

/** Services whose database takes SQL alone. */
export type SqlServices = Omit<Services, "db"> & { readonly db: SqlClient };

/** The services for work inside of a transaction: whatever uses their database is a part of it. */
export function within(services: Services, tx: Transaction): Services;
export function within(services: SqlServices, tx: SqlClient): SqlServices;
export function within(services: SqlServices, tx: SqlClient): SqlServices {
  open.add(tx);
  return { ...services, db: tx };
}

/** True for services inside of a transaction. */
export const isInTransaction = (services: Pick<SqlServices, "db">): boolean => open.has(services.db);

/**
 * Runs work as one transaction, isolated from all others, so that what it checked still holds when it writes. The work
 * may run more than once, so it must only use the transaction. Inside of a transaction, it becomes a part of that.
 */
export async function inTransaction<T>(
  services: Pick<Services, "db">,
  work: (tx: Transaction) => Promise<T>,
): Promise<T> {
  if (isInTransaction(services)) return work(services.db);
  return again((alone) => begin(services, work, alone));
}

/** What runs transactions of each client's database without the client, which costs ten times what the statements do. */
const direct = new WeakMap<object, GroupCommit>();

/** Lets {@link inSqlTransaction} pass by a client. */
export function writeDirectly(client: object, groups: GroupCommit): void {
  direct.set(client, groups);
}

/**
 * Runs work like {@link inTransaction}, with SQL alone. It may share its transaction with other work, so it must wait
 * for its own statements only.
 * @param lane work of one lane shares transactions, and never conflicts
 */
export async function inSqlTransaction<T>(
  services: Pick<Services, "db">,
  lane: string,
  work: (tx: SqlClient) => Promise<T>,
): Promise<T> {
  const groups = direct.get(services.db);
  if (groups === undefined) return inTransaction(services, work);
  return again((alone) => groups.run(lane, work, alone));
}

/** Runs a transaction again, as long as it conflicts with others. */
async function again<T>(run: (alone: boolean) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await run(attempt > TOGETHER);
    } catch (error) {
      if (attempt === ATTEMPTS || !isWriteConflict(error)) throw error;
      // Random, so that transactions that conflicted do not conflict again.
      await wait(Math.random() * Math.min(FIRST_WAIT * 2 ** (attempt - 1), LONGEST_WAIT));
    }
  }
}

function begin<T>(
  { db }: Pick<Services, "db">,
  work: (tx: Transaction) => Promise<T>,
  alone: boolean,
): Promise<T> {
  const run = async (tx: Transaction) => {
    await passGate(db, tx, alone);
    return work(tx);
  };
  return db.$transaction(run, { isolationLevel: "Serializable", maxWait: 20_000, timeout: 20_000 });
}
