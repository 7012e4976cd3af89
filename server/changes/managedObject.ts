import { hash } from "node:crypto";
import type { Declaration, declaredBy } from "@gatehouse-access/sdk/contract";
import { LRUCache } from "lru-cache";
import type { z } from "zod";
import type { SqlClient } from "../db/sql/sql.ts";
import type { Caller } from "../http/access/identity.ts";

/** The declared fields of an object, by their wire names; without fields that the service or an agent changes. */
export type Declared = Readonly<Record<string, unknown>>;

/** The parts of a write by which its object is found. */
export interface Write {
  readonly caller: Caller;
  readonly tenantId: string;
  readonly params: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>>;
  /** True once the operation has run. */
  readonly done: boolean;
  /** The operation's result; undefined before it has run, and if it has none. */
  readonly result: Readonly<Record<string, unknown>> | undefined;
}

/** A kind of declared object: how a write finds it, and how its declared fields are read. */
export interface ManagedObject<Row = unknown> {
  /** The object's id. Called before and after the operation: a creation makes the id, a renaming changes it. */
  id(tx: SqlClient, write: Write): string | Promise<string>;
  /** The object; null if the namespace has no such object. */
  find(tx: SqlClient, tenantId: string, id: string): Promise<Row | null>;
  /** The object's declared fields; null for one that counts as deleted. */
  declared(row: Row): Declared | null;
  /**
   * Stores who declared the object, its field `declaredBy`; nothing where the namespace has no such object. Left out for
   * kinds that have no row of their own.
   */
  declare?(tx: SqlClient, tenantId: string, id: string, declaredBy: string): Promise<unknown>;
}

/**
 * Cache of revisions by the JSON text of their object, limited by the number of characters. Lists need the revision of
 * each row, and computing a digest takes twice as long as a look-up here.
 */
const revisions = new LRUCache<string, string>({
  maxSize: 16_000_000,
  sizeCalculation: (_revision, text) => text.length,
});

/** The revision of an object: a digest of its declared fields, the same whenever the fields are the same. */
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

/** The column `declaredBy` of an object that a request with this declaration writes now; null without one. */
export function declaredColumn(declaration: Declaration | null, now: Date): string | null {
  return declaration && JSON.stringify({ ...declaration, at: now.toISOString() } satisfies Stored);
}

/** What a column `declaredBy` says; undefined where nothing was declared, which leaves the field out of an answer. */
export function declaredIn(column: string | null): Stored {
  return column === null ? undefined : (JSON.parse(column) as Stored);
}
