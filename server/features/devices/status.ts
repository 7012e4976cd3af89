import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import type { Device } from "../../db/generated/sqlite/client.ts";
import { ConflictError, InvalidError, NotFoundError } from "../../http/errors.ts";
import type { Handler } from "../../http/routes.ts";
import type { Services } from "../../services.ts";
import { inTransaction, type Transaction } from "../transaction.ts";
import { checkLimit } from "./deviceLimit.ts";

/** @throws NotFoundError not in the namespace */
async function deviceIn(tx: Transaction, tenantId: string, uid: string): Promise<Device> {
  const device = await tx.device.findUnique({ where: { uid, tenantId } });
  if (!device) throw new NotFoundError("no such device");
  return device;
}

async function acceptIn(services: Services, tx: Transaction, device: Device): Promise<void> {
  const { tenantId, uid, mac } = device;
  const accepted = { tenantId, status: "accepted", uid: { not: uid } };
  // An agent that names no MAC is not the same machine as another one that names none.
  const former = mac === "" ? null : await tx.device.findFirst({ where: { ...accepted, mac } });
  const namesake = await tx.device.findFirst({
    where: { ...accepted, name: device.name, ...(former && { mac: { not: mac } }) },
    select: { uid: true },
  });
  if (namesake) throw new ConflictError("another accepted device has the same name");
  const name = former?.name ?? device.name;
  if (former) {
    // The same machine with a new key takes its former self's name, place and sessions (rules section 7).
    await tx.session.updateMany({ where: { deviceUid: former.uid }, data: { deviceUid: uid } });
    await tx.device.delete({ where: { uid: former.uid } });
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
function accept(services: Services, tenantId: string, uid: string): Promise<void> {
  return inTransaction(services, async (tx) => {
    const device = await deviceIn(tx, tenantId, uid);
    if (device.status !== "accepted") await acceptIn(services, tx, device);
  });
}

export const acceptDevice: Handler<PublicOperations["acceptDevice"]> = async ({
  services,
  identity,
  params,
}) => {
  await accept(services, identity.tenant, params.uid);
  return undefined;
};

const TARGETS = { reject: "rejected", pending: "pending" } as const;

export const updateDeviceStatus: Handler<PublicOperations["updateDeviceStatus"]> = async (context) => {
  const { services, identity, params } = context;
  const { uid, status } = params;
  if (status === "accept") {
    await accept(services, identity.tenant, uid);
    return undefined;
  }
  await inTransaction(services, async (tx) => {
    const device = await deviceIn(tx, identity.tenant, uid);
    // A value of the specification that no state leads to (rules D23).
    if (status === "unused") throw new InvalidError("status: unused cannot be set");
    if (device.status !== "pending" && device.status !== "rejected") {
      throw new InvalidError(`status: of a device that is ${device.status} cannot be changed`);
    }
    if (device.status === TARGETS[status]) return;
    await tx.device.update({
      where: { uid },
      data: { status: TARGETS[status], statusUpdatedAt: services.now() },
    });
  });
  return undefined;
};
