import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import { recordChange } from "../../changes/recordChange.ts";
import type { Device } from "../../db/generated/sqlite/client.ts";
import { inTransaction, type Transaction, within } from "../../db/transaction.ts";
import { ConflictError, InvalidError, NotFoundError } from "../../errors.ts";
import type { Context, Handler } from "../../http/handler.ts";
import { checkLimit } from "./deviceLimit.ts";
import { declaredDevice } from "./objects.ts";

/** @throws NotFoundError the namespace has no such device */
async function deviceIn(tx: Transaction, tenantId: string, uid: string): Promise<Device> {
  const device = await tx.device.findUnique({ where: { uid, tenantId } });
  if (!device) throw new NotFoundError("no such device");
  return device;
}

/** The request that accepts a device. */
interface Acceptance {
  readonly operation: "acceptDevice" | "updateDeviceStatus";
  readonly context: Pick<
    Context<PublicOperations["acceptDevice"]>,
    "services" | "identity" | "request" | "declaration"
  >;
}

/** Deletes the device that a new one replaces, with its own audit entry: the acceptance's is about the new device. */
async function deleteFormer(tx: Transaction, former: Device, { operation, context }: Acceptance) {
  const { services, identity, request, declaration } = context;
  await tx.device.delete({ where: { uid: former.uid } });
  await recordChange(within(services, tx), {
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

async function acceptIn(tx: Transaction, device: Device, acceptance: Acceptance): Promise<void> {
  const { services } = acceptance.context;
  const { tenantId, uid, mac } = device;
  const accepted = { tenantId, status: "accepted", uid: { not: uid } };
  // Two agents without a MAC are different machines.
  const former = mac === "" ? null : await tx.device.findFirst({ where: { ...accepted, mac } });
  const namesake = await tx.device.findFirst({
    where: { ...accepted, name: device.name, ...(former && { mac: { not: mac } }) },
    select: { uid: true },
  });
  if (namesake) throw new ConflictError("another accepted device has the same name");
  const name = former?.name ?? device.name;
  if (former) {
    // The same machine with a new key takes over the old device's name, slot and sessions (rules section 7).
    await tx.session.updateMany({ where: { deviceUid: former.uid }, data: { deviceUid: uid } });
    await deleteFormer(tx, former, acceptance);
  } else {
    const namespace = await tx.namespace.findUniqueOrThrow({ where: { tenantId } });
    await checkLimit(services, tx, namespace, device);
  }
  await tx.device.update({
    where: { uid },
    data: { name, status: "accepted", statusUpdatedAt: services.now() },
  });
}

/** Accepting an accepted device changes nothing (rules D22). */
function accept(uid: string, acceptance: Acceptance): Promise<void> {
  const { services, identity } = acceptance.context;
  return inTransaction(services, async (tx) => {
    const device = await deviceIn(tx, identity.tenant, uid);
    if (device.status !== "accepted") await acceptIn(tx, device, acceptance);
    services.enrolments.noteRoom(identity.tenant);
  });
}

export const acceptDevice: Handler<PublicOperations["acceptDevice"]> = async (context) => {
  await accept(context.params.uid, { operation: "acceptDevice", context });
  return undefined;
};

const TARGETS = { reject: "rejected", pending: "pending" } as const;

export const updateDeviceStatus: Handler<PublicOperations["updateDeviceStatus"]> = async (context) => {
  const { services, identity, params } = context;
  const { uid, status } = params;
  if (status === "accept") {
    await accept(uid, { operation: "updateDeviceStatus", context });
    return undefined;
  }
  await inTransaction(services, async (tx) => {
    const device = await deviceIn(tx, identity.tenant, uid);
    // The specification has this value, but no transition leads to it (rules D23).
    if (status === "unused") throw new InvalidError("status: unused cannot be set");
    if (device.status !== "pending" && device.status !== "rejected") {
      throw new InvalidError(`status: of a device that is ${device.status} cannot be changed`);
    }
    if (device.status === TARGETS[status]) return;
    await tx.device.update({
      where: { uid },
      data: { status: TARGETS[status], statusUpdatedAt: services.now() },
    });
    services.enrolments.noteRoom(identity.tenant);
  });
  return undefined;
};
