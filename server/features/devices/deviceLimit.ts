import { DAY } from "@gatehouse-access/sdk/times";
import type { Device, Namespace } from "../../db/generated/sqlite/client.ts";
import { readRows, type Sql, sql } from "../../db/sql/sql.ts";
import { ForbiddenError, PaymentError } from "../../errors.ts";
import type { SqlServices } from "../../services.ts";
import { wireDate } from "../fields.ts";
import { deviceCount } from "./deviceCounts.ts";

/**
 * Time for which a removed device still counts toward the device limit of a cloud instance, in milliseconds (rules
 * section 7).
 */
const REMOVED_LIFE = 30 * DAY;

interface Slot {
  readonly status: string;
  /** Time of the last status change. A string is a time in wire format. */
  readonly statusUpdatedAt: Date | string;
}

type LimitedNamespace = Pick<Namespace, "tenantId" | "maxDevices">;

/** Returns the start of the period in which removed devices still count toward the device limit. */
export const removedSince = (services: Pick<SqlServices, "now">): Date =>
  new Date(services.now().getTime() - REMOVED_LIFE);

/**
 * Returns SQL that is true if the namespace has reached its limit of accepted devices. On a cloud instance, recently
 * removed devices count toward the limit.
 */
export function fullness(services: SqlServices, tenantId: string): Sql {
  const accepted = deviceCount(tenantId, { status: "accepted" });
  const removed = sql`SELECT COUNT(*) FROM "Device" WHERE "Device"."tenantId" = ${tenantId}
    AND "Device"."status" = 'removed' AND "Device"."statusUpdatedAt" > ${removedSince(services)}`;
  const held = services.settings.edition === "cloud" ? sql`(${accepted}) + (${removed})` : sql`(${accepted})`;
  return sql`(SELECT CASE WHEN "Namespace"."maxDevices" > 0 THEN ${held} >= "Namespace"."maxDevices" ELSE ${sql.false} END
    FROM "Namespace" WHERE "Namespace"."tenantId" = ${tenantId})`;
}

/** Returns true if the namespace has reached its limit of accepted devices: see {@link fullness}. */
export async function isFull(
  services: SqlServices,
  { tenantId, maxDevices }: LimitedNamespace,
): Promise<boolean> {
  if (maxDevices <= 0) return false;
  const [row] = await readRows<{ full: boolean | number }>(
    services.db,
    sql`SELECT ${fullness(services, tenantId)} AS "full"`,
  );
  return Boolean(row?.full);
}

/**
 * Returns true if the device can be accepted now. At the limit, only a recently removed device can be accepted, because
 * it already counts toward the limit.
 */
export function isAcceptable(services: SqlServices, device: Slot, full: boolean): boolean {
  if (device.status === "accepted") return false;
  if (!full) return true;
  return device.status === "removed" && wireDate(device.statusUpdatedAt) > wireDate(removedSince(services));
}

/**
 * Returns the error for a device that exceeds the namespace's limit of accepted devices. Returns null if the device can
 * be accepted.
 */
export async function limitRefusal(
  services: SqlServices,
  device: Device,
): Promise<PaymentError | ForbiddenError | null> {
  const { tenantId } = device;
  const [namespace] = await readRows<{ maxDevices: number; full: boolean | number }>(
    services.db,
    sql`SELECT "maxDevices", ${fullness(services, tenantId)} AS "full" FROM "Namespace" WHERE "tenantId" = ${tenantId}`,
  );
  if (namespace && isAcceptable(services, device, Boolean(namespace.full))) return null;
  const message = `the namespace can have at most ${namespace?.maxDevices} accepted devices`;
  return services.settings.edition === "cloud" ? new PaymentError(message) : new ForbiddenError(message);
}
