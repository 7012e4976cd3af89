import type { Services } from "../../../server/services.ts";
import { device } from "./rows.ts";

/** Returns the uid of the n-th device that {@link insertDevices} creates. */
export const uidOfMany = (n: number): string => String(n).padStart(64, "0");

/**
 * Creates thousands of devices at once. Device number n has the name `host-<n>`. All devices have the same times. Every
 * seventh device is removed; the other devices are accepted.
 * @param numbers the first number, and the number after the last number
 */
export async function insertDevices(
  db: Pick<Services["db"], "device" | "$executeRaw">,
  tenantId: string,
  [first, end]: readonly [number, number],
): Promise<void> {
  const now = new Date("2026-01-02T03:04:05.678Z");
  // The statement below creates the rows as copies of this device.
  const model = uidOfMany(10 ** 9 + first);
  await db.device.create({ data: device(tenantId, model, now, {}) });
  await db.$executeRaw`INSERT INTO "Device" ("uid", "tenantId", "name", "mac", "infoId", "infoPrettyName", "infoVersion",
      "infoArch", "infoPlatform", "publicKey", "status", "statusUpdatedAt", "createdAt", "lastSeen")
    WITH RECURSIVE numbers(n) AS (
      SELECT CAST(${first} AS INTEGER) UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < ${end}
    )
    SELECT substr(${"0".repeat(64)} || n, length(CAST(n AS TEXT)) + 1), "tenantId", 'host-' || n, "mac", "infoId",
      "infoPrettyName", "infoVersion", "infoArch", "infoPlatform", "publicKey",
      CASE WHEN n % 7 = 0 THEN 'removed' ELSE 'accepted' END, "statusUpdatedAt", "createdAt", "lastSeen"
    FROM numbers CROSS JOIN "Device" WHERE "uid" = ${model}`;
  await db.device.delete({ where: { uid: model } });
}
