import { hash } from "node:crypto";
import type { Declaration, declaredBy } from "@gatehouse-access/sdk/contract";
import { LRUCache } from "lru-cache";
import type { z } from "zod";
import type { SqlClient } from "../db/sql/sql.ts";
import type { Caller } from "../http/access/identity.ts";

/** Declared fields of an object, by wire name. Fields that the service or an agent changes are excluded. */
export type Declared = Readonly<Record<string, unknown>>;

/** The parts of a write that identify its object. */
export interface Write {
  readonly caller: Caller;
  readonly tenantId: string;
  readonly params: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>>;
  /** True once the operation has run. */
  readonly done: boolean;
  /** The operation's result; undefined before the operation has run, and for operations without a result. */
  readonly result: Readonly<Record<string, unknown>> | undefined;
}

/** A kind of declared object: how a write finds it, and how its declared fields are read. */
export interface ManagedObject<Row = unknown> {
  /**
   * Returns the object's id. Called before and after the operation: a create generates the id and a rename changes
   * it.
   */
  id(tx: SqlClient, write: Write): string | Promise<string>;
  /** Returns the object, or null if the namespace has no such object. */
  find(tx: SqlClient, tenantId: string, id: string): Promise<Row | null>;
  /** Returns the object's declared fields, or null if the object counts as deleted. */
  declared(row: Row): Declared | null;
  /**
   * Stores who declared the object in its field `declaredBy`. Does nothing if the namespace has no such object.
   * Omitted for kinds that have no database row.
   */
  declare?(tx: SqlClient, tenantId: string, id: string, declaredBy: string): Promise<unknown>;
}

/**
 * Cache of revisions by the JSON text of their object, limited by the number of characters. Lists need the revision
 * of each row, and a digest takes twice as long as a lookup in this cache.
 */
const revisions = new LRUCache<string, string>({
  maxSize: 16_000_000,
  sizeCalculation: (_revision, text) => text.length,
});

/** Returns the revision of an object: a digest of its declared fields. Equal fields have the same revision. */
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

/** Returns the value of the column `declaredBy` for a write with this declaration; null without a declaration. */
export function declaredColumn(declaration: Declaration | null, now: Date): string | null {
  return declaration && JSON.stringify({ ...declaration, at: now.toISOString() } satisfies Stored);
}

/** Parses a column `declaredBy`. Returns undefined if nothing was declared; responses then omit the field. */
export function declaredIn(column: string | null): Stored {
  return column === null ? undefined : (JSON.parse(column) as Stored);
}
