import type { SqlClient } from "../db/sql/sql.ts";
import { ConflictError } from "../errors.ts";

/**
 * A unique value is already taken, either by another object or by the object that an earlier request with the same
 * Idempotency-Key created.
 */
export class TakenError extends ConflictError {}

interface CreationContext {
  readonly services: { readonly db: SqlClient };
  /** Digest of the request's Idempotency-Key; null without one. */
  readonly creationKey: string | null;
  repeated(): void;
}

interface Creation<Existing, Created> {
  /** Returns the object that was created under the key, if it still exists. */
  find(tx: SqlClient, creationKey: string): Promise<Existing | null>;
  /** Creates the object. Returns null if a unique value is taken. */
  create(tx: SqlClient): Promise<Created | null>;
  /** The error message if another object has the unique value. */
  readonly taken: string;
}

/**
 * Creates an object, or returns the object that was created under the same Idempotency-Key. Runs in the transaction
 * of `writeObject`, which retries once if a request with the same key was faster.
 * @throws TakenError a unique value is taken
 */
export async function createOnce<Existing, Created>(
  context: CreationContext,
  creation: Creation<Existing, Created>,
): Promise<Existing | Created> {
  const { services, creationKey } = context;
  const { find, create, taken } = creation;
  const existing = creationKey === null ? null : await find(services.db, creationKey);
  if (existing !== null) {
    context.repeated();
    return existing;
  }
  const created = await create(services.db);
  if (created === null) throw new TakenError(taken);
  return created;
}
