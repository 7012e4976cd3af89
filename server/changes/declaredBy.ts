import type { Declaration, declaredBy } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";

type Stored = z.output<typeof declaredBy>;

/** The column `declaredBy` of an object that a request with this declaration writes now; null without one. */
export function declaredColumn(declaration: Declaration | null, now: Date): string | null {
  return declaration && JSON.stringify({ ...declaration, at: now.toISOString() } satisfies Stored);
}

/** What a column `declaredBy` says; undefined where nothing was declared, which leaves the field out of an answer. */
export function declaredIn(column: string | null): Stored {
  return column === null ? undefined : (JSON.parse(column) as Stored);
}
