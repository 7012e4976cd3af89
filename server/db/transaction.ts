import { setTimeout as wait } from "node:timers/promises";
import { isWriteConflict } from "../errors.ts";
import type { Services } from "../services.ts";
import type { Prisma } from "./generated/sqlite/client.ts";
import { passGate } from "./transactionGate.ts";

export type Transaction = Prisma.TransactionClient;

/** How often work is begun again when another transaction changed what it had read. */
const ATTEMPTS = 12;
/**
 * How many of them run beside other transactions. PostgreSQL takes some for conflicting that only touch the same page
 * of an index, so under load none of these may succeed; one that runs alone conflicts with no other.
 */
const TOGETHER = 2;
/** Longest wait before the second attempt, in milliseconds; it doubles with each one. */
const FIRST_WAIT = 4;
const LONGEST_WAIT = 400;

/** The transactions that are open. */
const open = new WeakSet<object>();

/** The services for work inside of a transaction: everything that uses their database is a part of it. */
export function within(services: Services, tx: Transaction): Services {
  open.add(tx);
  return { ...services, db: tx as Services["db"] };
}

/** True for services inside of a transaction. */
export const isInTransaction = (services: Pick<Services, "db">): boolean => open.has(services.db);

/**
 * Runs work as one transaction that sees no other one's changes, so that what it checked still holds when it
 * writes. It may run more than once: it must do nothing but use the transaction. Inside of one it is a part of that.
 */
export async function inTransaction<T>(
  services: Pick<Services, "db">,
  work: (tx: Transaction) => Promise<T>,
): Promise<T> {
  if (isInTransaction(services)) return work(services.db);
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await begin(services, work, attempt > TOGETHER);
    } catch (error) {
      if (attempt === ATTEMPTS || !isWriteConflict(error)) throw error;
      // At random, so that those that met do not meet again.
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
