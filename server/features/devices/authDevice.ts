import { isIPv4 } from "node:net";
import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import { ForbiddenError, NotFoundError } from "../../http/errors.ts";
import type { Handler, RequestFacts } from "../../http/routes.ts";
import { signDeviceToken } from "../../http/tokens.ts";
import type { Services } from "../../services.ts";
import { inTransaction, type Transaction } from "../transaction.ts";
import { deviceUid } from "./uid.ts";

/**
 * First name of a device: its host name, else its MAC with hyphens. An agent may send any text as its MAC;
 * what a device's name cannot hold (rules section 20) becomes a hyphen too.
 */
function firstName(hostname: string | undefined, mac: string): string {
  return (hostname || mac).toLowerCase().replaceAll(/[^a-z0-9_-]/g, "-");
}

/** The address that is shown of a device: the X-Real-IP of the request, which the specification reads here. */
function remoteAddress({ realIp, peer }: RequestFacts): string {
  return realIp && isIPv4(realIp) ? realIp : peer;
}

const isKnown = async (tx: Transaction, uid: string): Promise<boolean> =>
  (await tx.device.findUnique({ where: { uid }, select: { uid: true } })) !== null;

/**
 * Nobody vouches for a device that enrols, so there is a limit to the rows that strangers can make. A known
 * device passes whatever the limit.
 * @throws ForbiddenError as many devices as may wait in the namespace to be accepted
 */
async function checkPending(
  services: Services,
  tx: Transaction,
  { uid, tenantId }: { readonly uid: string; readonly tenantId: string },
): Promise<void> {
  const limit = services.settings.maximumPendingDevices;
  if (limit <= 0 || (await isKnown(tx, uid))) return;
  const pending = await tx.device.count({ where: { tenantId, status: "pending" }, take: limit });
  if (pending >= limit) {
    throw new ForbiddenError(
      `${limit} devices of the namespace wait to be accepted, the most that may: accept, reject or delete some`,
    );
  }
}

/**
 * An agent enrols or reports (rules section 7). What an administrator decides, name, status and tags, stays as
 * it is. The position is not looked up: 0,0 means unknown.
 */
export const authDevice: Handler<PublicOperations["authDevice"]> = async ({ services, body, request }) => {
  const { info, public_key: publicKey, tenant_id: tenantId } = body;
  const namespace = await services.db.namespace.findUnique({ where: { tenantId }, select: { name: true } });
  if (!namespace) throw new NotFoundError("tenant_id: no such namespace");

  const mac = body.identity?.mac ?? "";
  const uid = deviceUid({ mac, publicKey, tenantId });
  const now = services.now();
  const reported = {
    infoId: info.id,
    infoPrettyName: info.pretty_name,
    infoVersion: info.version,
    infoArch: info.arch,
    infoPlatform: info.platform,
    lastSeen: now,
    offline: false,
    remoteAddr: remoteAddress(request),
  };
  const store = (tx: Transaction) =>
    tx.device.upsert({
      where: { uid },
      update: reported,
      create: {
        uid,
        tenantId,
        mac,
        publicKey,
        name: firstName(body.hostname, mac),
        createdAt: now,
        statusUpdatedAt: now,
        ...reported,
      },
      select: { name: true },
    });
  const enrol = () =>
    inTransaction(services, async (tx) => {
      await checkPending(services, tx, { uid, tenantId });
      return store(tx);
    });
  const [device, token] = await Promise.all([
    (await isKnown(services.db, uid)) ? store(services.db) : enrol(),
    signDeviceToken(services, { uid, tenant: tenantId }),
  ]);
  return { uid, token, name: device.name, namespace: namespace.name };
};
