import type { connectors } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import { type Declared, type ManagedObject, revisionOf } from "../../changes/managedObject.ts";
import type { Connector } from "../../db/generated/sqlite/client.ts";

/** What is declared of a connector; of its TLS material a digest without the key. */
export const declaredConnector = (
  row: Pick<Connector, "enable" | "secure" | "address" | "port" | "tlsDigest">,
): Declared => ({
  enable: row.enable,
  secure: row.secure,
  address: row.address,
  port: row.port,
  tls: row.tlsDigest,
});

export const connectorObject: ManagedObject = {
  id: (_, { params }) => params.uid ?? "",
  async read(tx, tenantId, uid) {
    const row = await tx.connector.findUnique({ where: { uid, tenantId } });
    return row && declaredConnector(row);
  },
};

/** What is said of every connector: this service stores them, and connects to no engine. */
const NOT_CONNECTED = {
  state: "disconnected",
  message: "the service is not connected to the engine",
} as const;

/** A connector as the wire has it, without its TLS material (models section 13). */
export function presentConnector(row: Connector): z.output<typeof connectors.connector> {
  return {
    uid: row.uid,
    tenant_id: row.tenantId,
    enable: row.enable,
    secure: row.secure,
    address: row.address,
    port: row.port,
    status: NOT_CONNECTED,
    revision: revisionOf(declaredConnector(row)),
  };
}
