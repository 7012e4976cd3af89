import { setTimeout as wait } from "node:timers/promises";
import { isWriteConflict } from "../../errors.ts";

/** Attempts at what conflicts with others. */
const ATTEMPTS = 12;
/** Longest wait before the second attempt, in milliseconds; it doubles with each attempt. */
const FIRST_WAIT = 4;
const LONGEST_WAIT = 400;

/**
 * Runs a transaction again, as long as it conflicts with others. A statement by itself is one too: where it changes
 * several rows, PostgreSQL locks them in the order in which it finds them, so that two such statements may deadlock.
 * @param run gets the number of the attempt, from 1
 */
export async function retryConflicts<T>(run: (attempt: number) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await run(attempt);
    } catch (error) {
      if (attempt === ATTEMPTS || !isWriteConflict(error)) throw error;
      // Random, so that transactions that conflicted do not conflict again.
      await wait(Math.random() * Math.min(FIRST_WAIT * 2 ** (attempt - 1), LONGEST_WAIT));
    }
  }
}
