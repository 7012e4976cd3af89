import type { SqlClient } from "../db/sql/sql.ts";
import { ConflictError } from "../errors.ts";

/**
 * A unique value is already in use, by another object or by the object of an earlier request with the same
 * Idempotency-Key.
 */
export class TakenError extends ConflictError {}

interface CreationContext {
  readonly services: { readonly db: SqlClient };
  /** Digest of the request's Idempotency-Key; null if the request has no Idempotency-Key. */
  readonly creationKey: string | null;
  repeated(): void;
}

interface Creation<Existing, Created> {
  /** Returns the object that was created with the Idempotency-Key, or null if no such object exists. */
  find(tx: SqlClient, creationKey: string): Promise<Existing | null>;
  /** Creates the object. Returns null if another object already uses the unique value, such as the name. */
  create(tx: SqlClient): Promise<Created | null>;
  /** Error message for the case that another object already uses the unique value, such as the name. */
  readonly taken: string;
}

/**
 * Creates an object, or returns the object that was created with the same Idempotency-Key. Call it in the transaction
 * of `writeObject`, which retries once if a concurrent request with the same key created the object first.
 * @throws TakenError another object has the same unique value
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
