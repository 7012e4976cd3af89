import { devices, type PublicOperations, TOTAL_COUNT } from "@gatehouse-access/sdk/contract";
import type { Device } from "../../db/generated/sqlite/client.ts";
import { countRows, deleteRows, hasKey, updateRow } from "../../db/sql/rows.ts";
import { leaveToCommit, type Sql, sql } from "../../db/sql/sql.ts";
import { ConflictError, NotFoundError } from "../../errors.ts";
import type { Context, Handler, ObjectWrite, WriteContext } from "../../http/handler.ts";
import { listColumns, sortedBy } from "../../lists/listRows.ts";
import { billingOf, hasActiveSubscription } from "../billing/record.ts";
import { changesFrom } from "../fields.ts";
import { deviceCount } from "./deviceCounts.ts";
import { deviceTable } from "./deviceTable.ts";
import { deviceObject } from "./objects.ts";
import { shownTo } from "./presentDevice.ts";
import { type DeviceRow, deviceColumns, presentDevices, readDevices } from "./readDevices.ts";

/** Platform of the devices that the service lists as containers (rules section 7). */
export const CONTAINER = "connector";
const unknown = () => new NotFoundError(deviceObject.missing);

export const getDevices: Handler<PublicOperations["getDevices"]> = (context) => listDevices(context, false);

/** Returns a page of the containers of a namespace, or a page of its other devices. */
export async function listDevices(context: Context<PublicOperations["getDevices"]>, container: boolean) {
  const { services, identity, query, header } = context;
  const tenantId = identity.tenant;
  const table = deviceTable(services, tenantId);
  const status = query.status
    ? sql`"Device"."status" = ${query.status}`
    : sql`"Device"."status" <> 'removed'`;
  const platform = container
    ? sql`"Device"."infoPlatform" = ${CONTAINER}`
    : sql`"Device"."infoPlatform" <> ${CONTAINER}`;
  const request = {
    where: sql`"Device"."tenantId" = ${tenantId} AND ${status} AND ${platform}`,
    counted: deviceCount(tenantId, { status: query.status, container }),
    filter: query.filter,
    trailing: "and" as const,
    sort: sortedBy(table, query.sort_by, sql`"Device"."lastSeen"`, query.order_by, table.id),
    page: query.page,
    perPage: query.per_page,
  };
  const columns = deviceColumns(services, tenantId);
  const { rows, total } = await listColumns<DeviceRow>(services, table, columns, request);
  header(TOTAL_COUNT, total);
  return presentDevices(services, rows).map((device) => shownTo(identity.role, device));
}

export const getDevice: Handler<PublicOperations["getDevice"]> = async ({ services, identity, params }) => {
  const [device] = await readDevices(services, identity.tenant, [params.uid]);
  if (!device) throw unknown();
  return shownTo(identity.role, device);
};

/**
 * Deletes a device. On a cloud instance without active billing, an accepted device becomes a removed device instead. A
 * removed device still counts toward the device limit (rules section 7).
 */
export const deleteDevice: ObjectWrite<PublicOperations["deleteDevice"], Device> = async (context) => {
  const { services, found, became } = context;
  const { db, settings, enrollments } = services;
  const { uid, tenantId, status } = found();
  if (status === "removed") throw unknown();
  const limited = settings.edition === "cloud" && !hasActiveSubscription(await billingOf(services, tenantId));
  if (limited && status === "accepted") {
    await updateRow(
      db,
      "Device",
      { uid },
      { status: "removed", statusUpdatedAt: services.now(), declaredBy: null, tagsDeclaredBy: null },
    );
    await deleteRows(db, "Session", { deviceUid: uid });
    await deleteRows(db, "Tunnel", { deviceUid: uid });
  } else {
    await deleteRows(db, "Device", { uid });
  }
  enrollments.noteFreedQuota(tenantId);
  became(null);
  return undefined;
};

const settings = devices.updateDevice.body;
const deviceChanges = changesFrom<Device, typeof settings>(settings, {});

type Change = Pick<
  WriteContext<PublicOperations["updateDevice"], Device>,
  "services" | "body" | "found" | "became"
>;

/**
 * Changes a device.
 * @param rivals condition for the other devices in the namespace whose names must differ from the new name
 */
async function change({ services: { db }, body, found, became }: Change, rivals: Sql): Promise<undefined> {
  const stored = found();
  const { uid, tenantId } = stored;
  const changed = { ...deviceChanges(body), name: body.name?.toLowerCase() ?? stored.name };
  if (changed.name !== stored.name) {
    const named = sql`${hasKey<"Device">({ tenantId, name: changed.name })} AND "uid" <> ${uid} AND ${rivals}`;
    if ((await countRows(db, "Device", named, 1)) > 0)
      throw new ConflictError("name: another device of the namespace has this name; choose a different name");
  }
  await leaveToCommit(db, updateRow(db, "Device", { uid }, changed));
  became({ ...stored, ...changed });
}

/**
 * Updates a device. The name must differ from the names of all other devices in the namespace, except removed devices
 * (rules section 7, D38).
 */
export const updateDevice: ObjectWrite<PublicOperations["updateDevice"], Device> = (context) =>
  change(context, sql`"status" <> 'removed'`);

/**
 * Renames a device. The name needs to differ only from the names of accepted devices. The contract specifies this for
 * the older operation.
 */
export const renameDevice: ObjectWrite<PublicOperations["renameDevice"], Device> = (context) =>
  change(context, sql`"status" = 'accepted'`);
