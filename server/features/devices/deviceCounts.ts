import { providerOf, readRows, type Sql, type SqlClient, sql } from "../../db/sql/sql.ts";
import type { Services } from "../../services.ts";

/** Filter for the devices that are counted. Without `container`, both containers and other devices are counted. */
interface Counted {
  /** @default every status except `removed` */
  readonly status?: string | undefined;
  readonly container?: boolean;
}

/**
 * Returns a query for the number of devices in a namespace. The query adds up the counts in a few rows. Database
 * triggers update these counts with each change of a device.
 * @param tenantId a value or a column
 */
export function deviceCount(tenantId: Sql | string, { status, container }: Counted): Sql {
  const ofStatus =
    status === undefined ? sql`"DeviceCount"."status" <> 'removed'` : sql`"DeviceCount"."status" = ${status}`;
  const ofKind = container === undefined ? sql.true : sql`"DeviceCount"."container" = ${container}`;
  return sql`SELECT COALESCE(SUM("DeviceCount"."count"), 0) FROM "DeviceCount"
    WHERE "DeviceCount"."tenantId" = ${tenantId} AND ${ofStatus} AND ${ofKind}`;
}

async function countWith(db: SqlClient, tenantId: string, status: string): Promise<number> {
  const query = sql`SELECT (${deviceCount(tenantId, { status })}) AS number`;
  const [counted] = await readRows<{ number: number | bigint }>(db, query);
  return Number(counted?.number);
}

/** Returns the number of accepted devices in a namespace. */
export const countAccepted = (db: SqlClient, tenantId: string): Promise<number> =>
  countWith(db, tenantId, "accepted");

/** Returns the number of pending devices in a namespace. */
export const countPending = (db: SqlClient, tenantId: string): Promise<number> =>
  countWith(db, tenantId, "pending");

/**
 * On PostgreSQL, each database connection counts the devices in its own rows. This function merges the rows of ended
 * connections into one row per namespace, status and kind. Several instances may run this function at the same time,
 * and during the deletion of a namespace. An instance skips rows that another instance has locked, so that a deadlock
 * cannot occur. If a new connection has the process id of an ended connection, the new connection uses the existing row
 * or a new row.
 */
export async function foldDeviceCounts({ db }: Pick<Services, "db">): Promise<void> {
  if (providerOf(db) !== "postgres") return;
  await db.$executeRaw(sql`WITH ended AS MATERIALIZED (
      SELECT "tenantId", "status", "container", "slot" FROM "DeviceCount"
      WHERE "slot" > 0 AND "slot" NOT IN (SELECT pid FROM pg_stat_activity) FOR UPDATE SKIP LOCKED
    ), kept AS MATERIALIZED (
      SELECT "tenantId" FROM "Namespace" WHERE "tenantId" IN (SELECT "tenantId" FROM ended) FOR KEY SHARE SKIP LOCKED
    ), taken AS (
      DELETE FROM "DeviceCount" AS counted USING kept JOIN ended USING ("tenantId")
      WHERE (counted."tenantId", counted."status", counted."container", counted."slot")
        = (ended."tenantId", ended."status", ended."container", ended."slot")
      RETURNING counted.*
    )
    INSERT INTO "DeviceCount" AS folded ("tenantId", "status", "container", "slot", "count")
    SELECT "tenantId", "status", "container", 0, SUM("count") FROM taken GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ON CONFLICT ("tenantId", "status", "container", "slot") DO UPDATE SET "count" = folded."count" + EXCLUDED."count"`);
}
