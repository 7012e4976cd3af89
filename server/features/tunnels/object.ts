import type { Declared, ManagedObject } from "../../changes/managedObject.ts";
import type { Tunnel } from "../../db/generated/sqlite/client.ts";

/** What is declared of a tunnel; none of it can be changed. */
export const declaredTunnel = (row: Pick<Tunnel, "deviceUid" | "host" | "port" | "ttl">): Declared => ({
  device: row.deviceUid,
  host: row.host,
  port: row.port,
  ttl: Number(row.ttl),
});

export const tunnelObject: ManagedObject = {
  id: (_, { params, result }) => String(params.address ?? result?.address),
  async read(tx, tenantId, address) {
    const row = await tx.tunnel.findUnique({ where: { address, tenantId } });
    return row && declaredTunnel(row);
  },
};
