import { randomBytes } from "node:crypto";
import { isDatabaseError } from "../../errors.ts";
import type { Services } from "../../services.ts";

/** What the ledger works with. */
export type LedgerServices = Pick<Services, "db" | "now" | "settings">;

/** A new id of the ledger, like `cus_4f…`. */
export const newId = (prefix: "cus" | "sub" | "in"): string => `${prefix}_${randomBytes(12).toString("hex")}`;

/**
 * What was made under an idempotency key, now or earlier.
 * @param find what stands under the key; null if there is nothing
 */
export async function onceUnderKey<T>(find: () => Promise<T | null>, make: () => Promise<T>): Promise<T> {
  const made = await find();
  if (made !== null) return made;
  try {
    return await make();
  } catch (error) {
    // A call with the same key was faster.
    const other = isDatabaseError(error, "P2002") ? await find() : null;
    if (other === null) throw error;
    return other;
  }
}
