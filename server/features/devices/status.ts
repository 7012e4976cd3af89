import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import { recordChange } from "../../changes/recordChange.ts";
import type { Device } from "../../db/generated/sqlite/client.ts";
import { deleteRows, updateRow } from "../../db/sql/rows.ts";
import { leaveToCommit, readRows, type SqlClient, sql } from "../../db/sql/sql.ts";
import { ConflictError, InvalidError } from "../../errors.ts";
import type { ObjectWrite, WriteContext } from "../../http/handler.ts";
import { limitRefusal } from "./deviceLimit.ts";
import { declaredDevice } from "./objects.ts";

/** A request that changes the status of a device. */
interface Change {
  readonly operation: "acceptDevice" | "updateDeviceStatus";
  readonly context: Pick<
    WriteContext<PublicOperations["acceptDevice"], Device>,
    "services" | "identity" | "request" | "declaration" | "found" | "became"
  >;
}

/**
 * Changes the status and other columns of a device. Also records that the namespace may now have free quota for other
 * devices.
 */
async function change(
  { context }: Change,
  device: Device,
  changes: Pick<Device, "status"> & Partial<Device>,
) {
  const { services, identity, became } = context;
  const changed = { ...changes, statusUpdatedAt: services.now() };
  await leaveToCommit(services.db, updateRow(services.db, "Device", { uid: device.uid }, changed));
  services.enrollments.noteFreedQuota(identity.tenant);
  became({ ...device, ...changed });
}

/**
 * Deletes the device that a new device replaces. The deletion has its own audit entry, because the entry for the
 * acceptance describes only the new device.
 */
async function deleteReplaced(replaced: Device, { operation, context }: Change): Promise<void> {
  const { services, identity, request, declaration } = context;
  await deleteRows(services.db, "Device", { uid: replaced.uid });
  await recordChange(services, {
    tenantId: replaced.tenantId,
    caller: identity.caller,
    request,
    operation,
    object: { kind: "device", id: replaced.uid },
    before: declaredDevice(replaced),
    after: null,
    declaration,
  });
}

/**
 * Returns the accepted device that this device would replace: a device on the same machine (same MAC address) with a
 * different key. Agents without a MAC address are always treated as different machines.
 */
async function replacedBy(db: SqlClient, { tenantId, uid, mac }: Device): Promise<Device | undefined> {
  if (mac === "") return undefined;
  const [replaced] = await readRows<Device>(
    db,
    sql`SELECT * FROM "Device" WHERE "tenantId" = ${tenantId} AND "mac" = ${mac} AND "status" = 'accepted'
      AND "uid" <> ${uid} LIMIT 1`,
  );
  return replaced;
}

/** Returns true if an accepted device on a different machine has the same name. */
async function hasSameName(db: SqlClient, { tenantId, uid, name, mac }: Device): Promise<boolean> {
  const ofMachine = mac === "" ? sql.false : sql`"mac" = ${mac}`;
  const others = await readRows(
    db,
    sql`SELECT 1 FROM "Device" WHERE "tenantId" = ${tenantId} AND "name" = ${name} AND "status" = 'accepted'
      AND "uid" <> ${uid} AND NOT (${ofMachine}) LIMIT 1`,
  );
  return others.length > 0;
}

/**
 * Accepts a device. Does not change a device that is already accepted (rules D22).
 * @throws ConflictError an accepted device on a different machine has the same name
 * @throws NotFoundError the device does not exist
 * @throws PaymentError, ForbiddenError the namespace has the maximum number of accepted devices
 */
async function accept(acceptance: Change): Promise<void> {
  const { services, found } = acceptance.context;
  const { db } = services;
  const device = found();
  if (device.status === "accepted") return;
  const [replaced, taken, refusal] = await Promise.all([
    replacedBy(db, device),
    hasSameName(db, device),
    limitRefusal(services, device),
  ]);
  if (taken) throw new ConflictError("another accepted device has the same name");
  if (replaced) {
    // If a machine has a new key, its agent enrolls as a new device. When the new device is accepted, it receives the
    // name, quota and sessions of the old device (rules section 7).
    await db.$executeRaw(
      sql`UPDATE "Session" SET "deviceUid" = ${device.uid} WHERE "deviceUid" = ${replaced.uid}`,
    );
    await deleteReplaced(replaced, acceptance);
  } else if (refusal) {
    throw refusal;
  }
  await change(acceptance, device, { status: "accepted", name: replaced?.name ?? device.name });
}

export const acceptDevice: ObjectWrite<PublicOperations["acceptDevice"], Device> = async (context) => {
  await accept({ operation: "acceptDevice", context });
  return undefined;
};

const TARGETS = { reject: "rejected", pending: "pending" } as const;

export const updateDeviceStatus: ObjectWrite<PublicOperations["updateDeviceStatus"], Device> = async (
  context,
) => {
  const { params, found } = context;
  const { status } = params;
  const request = { operation: "updateDeviceStatus", context } as const;
  if (status === "accept") {
    await accept(request);
    return undefined;
  }
  const device = found();
  // The specification contains the status `unused`, but no device can get this status (rules D23).
  if (status === "unused") throw new InvalidError("status: a request cannot set the status unused");
  if (device.status !== "pending" && device.status !== "rejected") {
    throw new InvalidError(
      `status: the device is ${device.status}; a request can change the status only of a pending or rejected device`,
    );
  }
  if (device.status !== TARGETS[status]) await change(request, device, { status: TARGETS[status] });
  return undefined;
};
