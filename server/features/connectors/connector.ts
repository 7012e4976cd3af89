import type { connectors } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import { type Declared, type ManagedObject, revisionOf } from "../../changes/managedObject.ts";
import type { Connector } from "../../db/generated/sqlite/client.ts";
import { findRow } from "../../db/sql/rows.ts";

/**
 * The declared fields of a connector. The field `tls` contains a digest of the TLS material without the private key.
 */
export const declaredConnector = (
  row: Pick<Connector, "enable" | "secure" | "address" | "port" | "tlsDigest">,
): Declared => ({
  enable: row.enable,
  secure: row.secure,
  address: row.address,
  port: row.port,
  tls: row.tlsDigest,
});

export const connectorObject: ManagedObject<Connector> = {
  id: (_, { params }) => params.uid ?? "",
  find: (tx, tenantId, uid) => findRow(tx, "Connector", { uid, tenantId }),
  declared: declaredConnector,
};

/** The status of every connector. This service stores connectors, but does not connect to container engines. */
const NOT_CONNECTED = {
  state: "disconnected",
  message: "the service is not connected to the engine",
} as const;

/** Converts a connector to its wire format, without its TLS material (models section 13). */
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
