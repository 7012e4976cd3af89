import { ConflictError, isDatabaseError } from "../http/errors.ts";
import type { Services } from "../services.ts";
import { inTransaction, type Transaction } from "./transaction.ts";

interface Creation<T> {
  /** Digest of the request's Idempotency-Key; null without one. */
  readonly creationKey: string | null;
  /** The living object that was made under the key, null if there is none. */
  find(tx: Transaction, creationKey: string): Promise<T | null>;
  create(tx: Transaction): Promise<T>;
  /** What the caller is told when a unique value is another object's. */
  readonly taken: string;
}

/**
 * Makes an object, or gives the one that was made under the same Idempotency-Key.
 * @throws ConflictError a unique value is taken
 */
export async function createOnce<T>(services: Services, creation: Creation<T>): Promise<T> {
  const { creationKey, find, create, taken } = creation;
  for (let again = creationKey !== null; ; again = false) {
    try {
      return await inTransaction(services, async (tx) => {
        const made = creationKey === null ? null : await find(tx, creationKey);
        return made === null ? create(tx) : made;
      });
    } catch (error) {
      if (!isDatabaseError(error, "P2002")) throw error;
      // A request with the same key may have been faster; its object is there to be found by now.
      if (!again) throw new ConflictError(taken);
    }
  }
}
