import { randomBytes } from "node:crypto";
import { isDatabaseError } from "../../errors.ts";
import type { Services } from "../../services.ts";

/** The services that the ledger uses. */
export type LedgerServices = Pick<Services, "db" | "now" | "settings">;

/** Returns a new ledger id, such as `cus_4f…`. */
export const newId = (prefix: "cus" | "sub" | "in"): string => `${prefix}_${randomBytes(12).toString("hex")}`;

/**
 * Creates an object with an idempotency key. If an earlier call with the same key created the object, returns that
 * object instead.
 * @param find returns the object that was created with the key, or null if no such object exists
 */
export async function onceUnderKey<T>(find: () => Promise<T | null>, create: () => Promise<T>): Promise<T> {
  const existing = await find();
  if (existing !== null) return existing;
  try {
    return await create();
  } catch (error) {
    // A concurrent call with the same key may have created the object first.
    const other = isDatabaseError(error, "P2002") ? await find() : null;
    if (other === null) throw error;
    return other;
  }
}
