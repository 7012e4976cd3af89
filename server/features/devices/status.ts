import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import { recordChange } from "../../changes/recordChange.ts";
import type { Device } from "../../db/generated/sqlite/client.ts";
import { deleteRows, updateRow } from "../../db/sql/rows.ts";
import { leaveToCommit, readRows, type SqlClient, sql } from "../../db/sql/sql.ts";
import { ConflictError, InvalidError, NotFoundError } from "../../errors.ts";
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

const noSuchDevice = () => new NotFoundError("no such device");

/** Changes a device and the quota that the namespace has left for other devices. */
async function change(
  { context }: Change,
  device: Device,
  changes: Pick<Device, "status"> & Partial<Device>,
) {
  const { services, identity, became } = context;
  const changed = { ...changes, statusUpdatedAt: services.now() };
  await leaveToCommit(services.db, updateRow(services.db, "Device", { uid: device.uid }, changed));
  services.enrollments.noteFreedQuota(identity.tenant);
  became(declaredDevice({ ...device, ...changed }));
}

/** Deletes the device that a new one replaces, with its own audit entry: the acceptance's is about the new device. */
async function deleteFormer(former: Device, { operation, context }: Change): Promise<void> {
  const { services, identity, request, declaration } = context;
  await deleteRows(services.db, "Device", { uid: former.uid });
  await recordChange(services, {
    tenantId: former.tenantId,
    caller: identity.caller,
    request,
    operation,
    object: { kind: "device", id: former.uid },
    before: declaredDevice(former),
    after: null,
    declaration,
  });
}

/** The accepted device of the same machine, which had another key. Two agents without a MAC are different machines. */
async function formerOf(db: SqlClient, { tenantId, uid, mac }: Device): Promise<Device | undefined> {
  if (mac === "") return undefined;
  const [former] = await readRows<Device>(
    db,
    sql`SELECT * FROM "Device" WHERE "tenantId" = ${tenantId} AND "mac" = ${mac} AND "status" = 'accepted'
      AND "uid" <> ${uid} LIMIT 1`,
  );
  return former;
}

/** True if another accepted device has the same name, and is not of the same machine. */
async function hasNamesake(db: SqlClient, { tenantId, uid, name, mac }: Device): Promise<boolean> {
  const ofMachine = mac === "" ? sql.false : sql`"mac" = ${mac}`;
  const namesakes = await readRows(
    db,
    sql`SELECT 1 FROM "Device" WHERE "tenantId" = ${tenantId} AND "name" = ${name} AND "status" = 'accepted'
      AND "uid" <> ${uid} AND NOT (${ofMachine}) LIMIT 1`,
  );
  return namesakes.length > 0;
}

/**
 * Accepting an accepted device changes nothing (rules D22).
 * @throws ConflictError another accepted device has the same name, and is not the one that this one replaces
 * @throws NotFoundError no such device
 * @throws PaymentError, ForbiddenError the namespace has as many devices as it may have
 */
async function accept(acceptance: Change): Promise<void> {
  const { services, found: device } = acceptance.context;
  const { db } = services;
  if (device === null) throw noSuchDevice();
  if (device.status === "accepted") return;
  const [former, taken, refusal] = await Promise.all([
    formerOf(db, device),
    hasNamesake(db, device),
    limitRefusal(services, device),
  ]);
  if (taken) throw new ConflictError("another accepted device has the same name");
  if (former) {
    // The same machine with a new key takes over the old device's name, slot and sessions (rules section 7).
    await db.$executeRaw(
      sql`UPDATE "Session" SET "deviceUid" = ${device.uid} WHERE "deviceUid" = ${former.uid}`,
    );
    await deleteFormer(former, acceptance);
  } else if (refusal) {
    throw refusal;
  }
  await change(acceptance, device, { status: "accepted", name: former?.name ?? device.name });
}

export const acceptDevice: ObjectWrite<PublicOperations["acceptDevice"], Device> = async (context) => {
  await accept({ operation: "acceptDevice", context });
  return undefined;
};

const TARGETS = { reject: "rejected", pending: "pending" } as const;

export const updateDeviceStatus: ObjectWrite<PublicOperations["updateDeviceStatus"], Device> = async (
  context,
) => {
  const { params, found: device } = context;
  const { status } = params;
  const asked = { operation: "updateDeviceStatus", context } as const;
  if (status === "accept") {
    await accept(asked);
    return undefined;
  }
  if (device === null) throw noSuchDevice();
  // The specification has this value, but no transition leads to it (rules D23).
  if (status === "unused") throw new InvalidError("status: unused cannot be set");
  if (device.status !== "pending" && device.status !== "rejected") {
    throw new InvalidError(`status: of a device that is ${device.status} cannot be changed`);
  }
  if (device.status !== TARGETS[status]) await change(asked, device, { status: TARGETS[status] });
  return undefined;
};
