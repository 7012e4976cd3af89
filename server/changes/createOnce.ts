import type { SqlClient } from "../db/sql/sql.ts";
import { ConflictError } from "../errors.ts";

/**
 * A unique value is taken: by another object, or by the object that an earlier request with the same Idempotency-Key
 * made.
 */
export class TakenError extends ConflictError {}

interface CreationContext {
  readonly services: { readonly db: SqlClient };
  /** Digest of the request's Idempotency-Key; null without one. */
  readonly creationKey: string | null;
  repeated(): void;
}

interface Creation<Found, Made> {
  /** The object that was made under the key, if it still exists. */
  find(tx: SqlClient, creationKey: string): Promise<Found | null>;
  /** Null: a unique value is taken. */
  create(tx: SqlClient): Promise<Made | null>;
  /** The error message for a unique value that another object has. */
  readonly taken: string;
}

/**
 * Creates an object, or returns the one that was created under the same Idempotency-Key. Runs in the transaction of
 * `writeObject`, which retries once if a request with the same key was faster.
 * @throws TakenError a unique value is taken
 */
export async function createOnce<Found, Made>(
  context: CreationContext,
  creation: Creation<Found, Made>,
): Promise<Found | Made> {
  const { services, creationKey } = context;
  const { find, create, taken } = creation;
  const made = creationKey === null ? null : await find(services.db, creationKey);
  if (made !== null) {
    context.repeated();
    return made;
  }
  const created = await create(services.db);
  if (created === null) throw new TakenError(taken);
  return created;
}
