import type { Device, Namespace } from "../../db/generated/sqlite/client.ts";
import { readRows } from "../../db/readRows.ts";
import { findRow } from "../../db/rows.ts";
import { sql } from "../../db/sql.ts";
import type { SqlServices } from "../../db/transaction.ts";
import { ForbiddenError, PaymentError } from "../../errors.ts";
import { countAccepted } from "./deviceCounts.ts";

/** How long a removed device's slot still counts on a cloud instance, in milliseconds (rules section 7). */
const REMOVED_LIFE = 30 * 24 * 60 * 60_000;

interface Slot {
  readonly status: string;
  readonly statusUpdatedAt: Date;
}

type LimitedNamespace = Pick<Namespace, "tenantId" | "maxDevices">;

/** Devices that were removed later than this still hold their slots. */
export const removedSince = (services: Pick<SqlServices, "now">): Date =>
  new Date(services.now().getTime() - REMOVED_LIFE);

/** True when no further device can be accepted; on a cloud instance, recently removed devices count too. */
export async function isFull(
  services: SqlServices,
  { tenantId, maxDevices }: LimitedNamespace,
): Promise<boolean> {
  if (maxDevices <= 0) return false;
  const { db } = services;
  const room = maxDevices - (await countAccepted(db, tenantId));
  if (room <= 0) return true;
  if (services.settings.edition !== "cloud") return false;
  const removed = sql`SELECT 1 FROM "Device" WHERE "tenantId" = ${tenantId} AND "status" = 'removed'
    AND "statusUpdatedAt" > ${removedSince(services)} LIMIT ${room}`;
  return (await readRows(db, removed)).length === room;
}

/** True when the device can be accepted now; a removed device uses the slot that it still has. */
export function isAcceptable(services: SqlServices, device: Slot, full: boolean): boolean {
  if (device.status === "accepted") return false;
  return !full || (device.status === "removed" && device.statusUpdatedAt > removedSince(services));
}

/**
 * Checks that the device's namespace can accept it.
 * @throws PaymentError the limit is reached, on a cloud instance
 * @throws ForbiddenError the limit is reached
 */
export async function checkLimit(services: SqlServices, device: Device): Promise<void> {
  const namespace = await findRow(services.db, "Namespace", { tenantId: device.tenantId });
  if (namespace && isAcceptable(services, device, await isFull(services, namespace))) return;
  const message = `the namespace may have ${namespace?.maxDevices} accepted devices at most`;
  throw services.settings.edition === "cloud" ? new PaymentError(message) : new ForbiddenError(message);
}
