import type { devices } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import type { Device } from "../../db/generated/sqlite/client.ts";
import { readWireRows, type Sql, sql, type WireRow } from "../../db/sql/sql.ts";
import { inOrder } from "../../lists/listRows.ts";
import type { Services } from "../../services.ts";
import { wireDate } from "../fields.ts";
import { tagNamesIn, tagsColumn } from "../tags/tagList.ts";
import { fullness, isAcceptable } from "./deviceLimit.ts";
import { onlineSince } from "./online.ts";
import { presentDevice } from "./presentDevice.ts";

type WireDevice = z.output<typeof devices.device>;

/** A row of {@link deviceColumns}. */
export interface DeviceRow extends WireRow<Device> {
  readonly tagList: string | null;
  readonly namespaceName: string;
  /** A Boolean value on PostgreSQL, and the number 1 or 0 on SQLite. */
  readonly full: boolean | number;
}

const TAGS = tagsColumn(sql`"DeviceTag"`, sql`"DeviceTag"."deviceUid" = "Device"."uid"`);

/** Returns all columns that the wire format of a device needs, so that one statement reads a page of devices. */
export const deviceColumns = (services: Services, tenantId: string): Sql => sql`"Device".*,
  ${TAGS} AS "tagList",
  (SELECT "Namespace"."name" FROM "Namespace" WHERE "Namespace"."tenantId" = ${tenantId}) AS "namespaceName",
  ${fullness(services, tenantId)} AS "full"`;

/** Converts devices to their wire format. */
export function presentDevices(services: Services, rows: readonly DeviceRow[]): WireDevice[] {
  const since = wireDate(onlineSince(services));
  return rows.map((row) =>
    presentDevice(row, tagNamesIn(row.tagList), {
      namespace: row.namespaceName,
      onlineSince: since,
      acceptable: isAcceptable(services, row, Boolean(row.full)),
    }),
  );
}

/** Returns devices of a namespace in wire format, in the order of `uids`. Unknown uids are omitted. */
export async function readDevices(
  services: Services,
  tenantId: string,
  uids: readonly string[],
): Promise<WireDevice[]> {
  if (uids.length === 0) return [];
  const rows = await readWireRows<DeviceRow>(
    services.db,
    sql`SELECT ${deviceColumns(services, tenantId)} FROM "Device"
      WHERE "Device"."uid" IN (${sql.list(uids)}) AND "Device"."tenantId" = ${tenantId}`,
  );
  return presentDevices(
    services,
    inOrder(uids, rows, (row) => row.uid),
  );
}
