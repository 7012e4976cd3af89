import { foldCounterRows } from "../../db/sql/counterRows.ts";
import { readRows, type Sql, type SqlClient, sql } from "../../db/sql/sql.ts";
import type { Services } from "../../services.ts";

/** Filter for the devices to count. If `container` is omitted, both containers and other devices are counted. */
interface Counted {
  /** @default every status except `removed` */
  readonly status?: string | undefined;
  readonly container?: boolean;
}

/**
 * Returns a query for the number of devices in a namespace. The query adds up the counts of a few rows. Database
 * triggers update these counts after each change to a device.
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

/** Merges the counter rows of closed database connections: see {@link foldCounterRows}. */
export const foldDeviceCounts = ({ db }: Pick<Services, "db">): Promise<void> =>
  foldCounterRows(db, { name: "DeviceCount", key: ["tenantId", "status", "container"], counter: "count" });
