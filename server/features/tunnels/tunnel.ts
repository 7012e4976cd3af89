import type { tunnels } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import { type Declared, type ManagedObject, revisionOf } from "../../changes/managedObject.ts";
import type { Tunnel } from "../../db/generated/sqlite/client.ts";
import { findRow } from "../../db/sql/rows.ts";
import type { RequestFacts } from "../../http/listener/requestFacts.ts";
import type { Services } from "../../services.ts";
import { wireDate } from "../wireDate.ts";

/** Returns the declared fields of a tunnel, which cannot be changed. */
export const declaredTunnel = (row: Pick<Tunnel, "deviceUid" | "host" | "port" | "ttl">): Declared => ({
  device: row.deviceUid,
  host: row.host,
  port: row.port,
  ttl: Number(row.ttl),
});

export const tunnelObject: ManagedObject<Tunnel> = {
  id: (_, { params, result }) => String(params.address ?? result?.address),
  find: (tx, tenantId, address) => findRow(tx, "Tunnel", { address, tenantId }),
  declared: declaredTunnel,
};

type WireTunnel = z.output<typeof tunnels.tunnel>;

/** Converts a tunnel to its wire format (models section 10). */
export function presentTunnel(
  services: Pick<Services, "settings">,
  row: Tunnel,
  request: RequestFacts,
): WireTunnel {
  const domain = services.settings.tunnelsDomain ?? request.origin.hostname;
  return {
    address: row.address,
    full_address: `${row.address}.${domain}`,
    namespace: row.tenantId,
    device: row.deviceUid,
    host: row.host,
    port: row.port,
    ttl: Number(row.ttl),
    expires_in: wireDate(row.ttl === -1n ? null : row.expiresAt),
    created_at: wireDate(row.createdAt),
    revision: revisionOf(declaredTunnel(row)),
  };
}
