import { randomBytes } from "node:crypto";
import { isDatabaseError } from "../../errors.ts";
import type { Services } from "../../services.ts";

/** The services that the ledger uses. */
export type LedgerServices = Pick<Services, "db" | "now" | "settings">;

/** A new id of the ledger, like `cus_4f…`. */
export const newId = (prefix: "cus" | "sub" | "in"): string => `${prefix}_${randomBytes(12).toString("hex")}`;

/**
 * Creates an object under an idempotency key, or returns the one created earlier.
 * @param find the object under the key; null without one
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
