import type { connectors } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import { revisionOf } from "../../changes/managedObject.ts";
import type { Connector } from "../../db/generated/sqlite/client.ts";
import { declaredConnector } from "./object.ts";

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
