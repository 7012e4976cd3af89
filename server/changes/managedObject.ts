import { hash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Transaction } from "../db/transaction.ts";
import type { Caller } from "../http/identity.ts";

/** What people declare of an object, under the wire's names; nothing that the service or an agent changes. */
export type Declared = Readonly<Record<string, unknown>>;

/** A write as its object is found by. */
export interface Write {
  readonly caller: Caller;
  readonly tenantId: string;
  readonly params: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>>;
  /** The operation ran. */
  readonly done: boolean;
  /** What it answers; undefined before, and where it answers nothing. */
  readonly result: Readonly<Record<string, unknown>> | undefined;
}

/** A kind of object that writes change: how one is found, and what is declared of it. */
export interface ManagedObject {
  /** The object's id. Asked before and after the operation: a renaming changes it, a creation makes it. */
  id(tx: Transaction, write: Write): string | Promise<string>;
  /** What is declared of it now; null without such an object in the namespace. */
  read(tx: Transaction, tenantId: string, id: string): Promise<Declared | null>;
}

/**
 * Revisions of the texts that were asked for last, up to so many characters. A list asks for that of each of its rows,
 * and a digest takes twice as long as the look into this.
 */
const revisions = new LRUCache<string, string>({
  maxSize: 16_000_000,
  sizeCalculation: (_revision, text) => text.length,
});

/** A digest of what is declared; the same for the same, whatever happened between. */
export function revisionOf(declared: Declared): string {
  const text = JSON.stringify(declared);
  let revision = revisions.get(text);
  if (revision === undefined) {
    revision = hash("sha256", text, "base64url").slice(0, 22);
    revisions.set(text, revision);
  }
  return revision;
}
