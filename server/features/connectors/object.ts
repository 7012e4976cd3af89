import type { Declared, ManagedObject } from "../../changes/managedObject.ts";
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
