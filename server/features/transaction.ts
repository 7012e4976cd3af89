import { setTimeout as wait } from "node:timers/promises";
import type { Prisma } from "../db/generated/sqlite/client.ts";
import { isDatabaseError } from "../http/errors.ts";
import type { Services } from "../services.ts";

export type Transaction = Prisma.TransactionClient;

/** How often work is begun again when another transaction changed what it had read. */
const ATTEMPTS = 12;
/** Longest wait before the second attempt, in milliseconds; it doubles with each one. */
const FIRST_WAIT = 4;
const LONGEST_WAIT = 400;

/**
 * Runs work as one transaction that sees no other one's changes, so that what it checked still holds when it
 * writes. It may run more than once: it must do nothing but use the transaction.
 */
export async function inTransaction<T>(
  services: Pick<Services, "db">,
  work: (tx: Transaction) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await services.db.$transaction(work, {
        isolationLevel: "Serializable",
        maxWait: 20_000,
        timeout: 20_000,
      });
    } catch (error) {
      if (attempt === ATTEMPTS || !isDatabaseError(error, "P2034")) throw error;
      // At random, so that those that met do not meet again.
      await wait(Math.random() * Math.min(FIRST_WAIT * 2 ** (attempt - 1), LONGEST_WAIT));
    }
  }
}
