import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import { NotFoundError } from "../../http/errors.ts";
import type { Handler } from "../../http/routes.ts";
import { signDeviceToken } from "../../http/tokens.ts";
import { deviceUid } from "./uid.ts";

/**
 * First name of a device: its host name, else its MAC with hyphens. An agent may send any text as its MAC;
 * what a device's name cannot hold (rules section 20) becomes a hyphen too.
 */
function firstName(hostname: string | undefined, mac: string): string {
  return (hostname || mac).toLowerCase().replaceAll(/[^a-z0-9_-]/g, "-");
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
    remoteAddr: request.address,
  };
  const [device, token] = await Promise.all([
    services.db.device.upsert({
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
    }),
    signDeviceToken(services, { uid, tenant: tenantId }),
  ]);
  services.metrics.heartbeats.inc();
  return { uid, token, name: device.name, namespace: namespace.name };
};
