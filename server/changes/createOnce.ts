import type { Transaction } from "../db/transaction.ts";
import { ConflictError, isDatabaseError } from "../errors.ts";
import type { Services } from "../services.ts";

/**
 * A unique value is taken: by another object, or by the object that an earlier request with the same Idempotency-Key
 * made.
 */
export class TakenError extends ConflictError {}

interface CreationContext {
  readonly services: Services;
  /** Digest of the request's Idempotency-Key; null without one. */
  readonly creationKey: string | null;
  repeated(): void;
}

interface Creation<T> {
  /** The object that was made under the key, if it still exists. */
  find(tx: Transaction, creationKey: string): Promise<T | null>;
  create(tx: Transaction): Promise<T>;
  /** The error message for a unique value that another object has. */
  readonly taken: string;
}

/**
 * Creates an object, or returns the one that was created under the same Idempotency-Key. Runs in the transaction of
 * `writeObject`, which retries once if a request with the same key was faster.
 * @throws TakenError a unique value is taken
 */
export async function createOnce<T>(context: CreationContext, creation: Creation<T>): Promise<T> {
  const { services, creationKey } = context;
  const { find, create, taken } = creation;
  const made = creationKey === null ? null : await find(services.db, creationKey);
  if (made !== null) {
    context.repeated();
    return made;
  }
  try {
    return await create(services.db);
  } catch (error) {
    throw isDatabaseError(error, "P2002") ? new TakenError(taken) : error;
  }
}
