import { hash } from "node:crypto";
import type { Declaration, declaredBy } from "@gatehouse-access/sdk/contract";
import { LRUCache } from "lru-cache";
import type { z } from "zod";
import type { SqlClient } from "../db/sql/sql.ts";
import { NotFoundError } from "../errors.ts";
import type { Caller } from "../http/access/identity.ts";

/**
 * The fields of an object that programs declare, by wire name. The fields that the service or an agent sets are not
 * included.
 */
export type Declared = Readonly<Record<string, unknown>>;

/** The data of a write request that determines the id of the changed object. */
export interface Write {
  readonly caller: Caller;
  readonly tenantId: string;
  readonly params: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>>;
  /** True after the operation has run. */
  readonly done: boolean;
  /** The operation's result. Undefined before the operation has run, and for operations without a result. */
  readonly result: Readonly<Record<string, unknown>> | undefined;
}

/** Functions that find an object of one kind (such as devices or API keys) and read its declared fields. */
export interface ManagedObject<Row = unknown> {
  /** Error message of requests for an object that does not exist. */
  readonly missing: string;
  /**
   * Returns the object's id. Called before and after the operation, because a create generates the id and a rename
   * changes it.
   */
  id(tx: SqlClient, write: Write): string | Promise<string>;
  /** Returns the object, or null if the namespace has no such object. */
  find(tx: SqlClient, tenantId: string, id: string): Promise<Row | null>;
  /**
   * Returns the object's declared fields. Returns null if the row still exists, but clients see the object as deleted.
   */
  declared(row: Row): Declared | null;
  /**
   * Stores, in the column `declaredBy`, the program resource that declares the object. Does nothing if the namespace
   * has no such object. Kinds whose objects have no database row do not have this function.
   */
  declare?(tx: SqlClient, tenantId: string, id: string, declaredBy: string): Promise<unknown>;
}

/**
 * Returns an object of the namespace.
 * @throws NotFoundError the namespace has no such object
 */
export async function findObject<Row>(
  kind: ManagedObject<Row>,
  db: SqlClient,
  tenantId: string,
  id: string,
): Promise<Row> {
  const row = await kind.find(db, tenantId, id);
  if (row === null) throw new NotFoundError(kind.missing);
  return row;
}

/**
 * Cache of revisions, by the JSON text of the declared fields. The total number of characters of the cached texts is
 * limited. Lists need the revision of each row, and computing the digest takes twice as long as a cache lookup.
 */
const revisions = new LRUCache<string, string>({
  maxSize: 16_000_000,
  sizeCalculation: (_revision, text) => text.length,
});

/**
 * Returns the revision of an object: a digest of its declared fields. Objects with equal fields have the same revision.
 */
export function revisionOf(declared: Declared): string {
  const text = JSON.stringify(declared);
  let revision = revisions.get(text);
  if (revision === undefined) {
    revision = hash("sha256", text, "base64url").slice(0, 22);
    revisions.set(text, revision);
  }
  return revision;
}

type Stored = z.output<typeof declaredBy>;

/**
 * Returns the value of the column `declaredBy` for a request with this declaration. Returns null if the request has no
 * declaration.
 */
export function declaredColumn(declaration: Declaration | null, now: Date): string | null {
  return declaration && JSON.stringify({ ...declaration, at: now.toISOString() } satisfies Stored);
}

/**
 * Parses the column `declaredBy`. Returns undefined if no program declared the object, so that responses omit the
 * field.
 */
export function declaredIn(column: string | null): Stored {
  return column === null ? undefined : (JSON.parse(column) as Stored);
}
