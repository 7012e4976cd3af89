import { randomUUID } from "node:crypto";
import { connectors, type PublicOperations } from "@gatehouse-access/sdk/contract";
import { z } from "zod";
import { findObject, type ManagedObject, revisionOf } from "../../changes/managedObject.ts";
import { recordChange } from "../../changes/recordChange.ts";
import { deletion } from "../../changes/writeObject.ts";
import type { Connector } from "../../db/generated/sqlite/client.ts";
import { findRow, updateRow } from "../../db/sql/rows.ts";
import { leaveToCommit } from "../../db/sql/sql.ts";
import { inTransaction, type Transaction, within } from "../../db/sql/transaction.ts";
import { InvalidError, NotConnectedError } from "../../errors.ts";
import type { Handler, ObjectWrite } from "../../http/handler.ts";
import { readPage } from "../../lists/page.ts";
import type { Services, SqlServices } from "../../services.ts";
import { changesFrom, presenter } from "../fields.ts";
import { requireQuota } from "../requireQuota.ts";
import { NO_TLS, type StoredTls, sealTls, type TlsMaterial } from "./tlsMaterial.ts";

const { connector } = connectors;
const settings = connectors.connectorUpdate.body;
const declared = connector
  .pick({ enable: true, secure: true, address: true, port: true })
  .extend({ tls: z.string().nullable() });

/**
 * Returns the declared fields of a connector. The field `tls` is a digest of the CA certificate and the certificate.
 * The private key is not part of the digest.
 */
const declaredConnector = presenter<Connector, typeof declared>(declared, { tls: (row) => row.tlsDigest });

/** Returns the columns for the settings in a request, except the TLS material. */
const connectorChanges = changesFrom<Connector, typeof settings>(settings, { tls: true });

export const connectorObject: ManagedObject<Connector> = {
  missing: "no such connector",
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
export const presentConnector = presenter<Connector, typeof connector>(connector, {
  status: () => NOT_CONNECTED,
  revision: (row) => revisionOf(declaredConnector(row)),
});

/**
 * Returns the TLS columns that a connector has after a request.
 * @param stored the columns before the request
 * @throws InvalidError a secure connector has no TLS material, or the new material is invalid
 */
function tlsColumns(
  services: SqlServices,
  uid: string,
  secure: boolean,
  given: TlsMaterial | null | undefined,
  stored: StoredTls,
): StoredTls {
  if (!secure) return NO_TLS;
  if (given) return sealTls(services, uid, given);
  if (stored.sealedTls === null) throw new InvalidError("tls: a secure connector needs this field");
  return { sealedTls: stored.sealedTls, tlsDigest: stored.tlsDigest };
}

/**
 * Checks that the namespace can have one more connector.
 * @throws ForbiddenError the namespace has the maximum number of connectors
 */
function checkNumber(services: Services, tx: Transaction, tenantId: string): Promise<void> {
  const limit = services.settings.maximumConnectors;
  return requireQuota(
    limit,
    () => tx.connector.count({ where: { tenantId }, take: limit }),
    `the namespace has the maximum of ${limit} connectors: delete one`,
  );
}

/**
 * Creates a connector, and records the change in the audit trail. The response does not identify the connector, and
 * therefore does not contain its revision either.
 */
export const connectorCreate: Handler<PublicOperations["connectorCreate"]> = async (context) => {
  const { services, identity, body, request } = context;
  const uid = randomUUID();
  const secure = body.secure ?? false;
  const data = {
    uid,
    tenantId: identity.tenant,
    enable: body.enable ?? true,
    secure,
    address: body.address.toLowerCase(),
    port: body.port,
    ...tlsColumns(services, uid, secure, body.tls, NO_TLS),
    createdAt: services.now(),
  };
  await inTransaction(services, async (tx) => {
    await checkNumber(services, tx, identity.tenant);
    const row = await tx.connector.create({ data });
    await recordChange(within(services, tx), {
      tenantId: identity.tenant,
      caller: identity.caller,
      request,
      operation: "connectorCreate",
      object: { kind: "connector", id: uid },
      before: null,
      after: connectorObject.declared(row),
    });
  });
  return undefined;
};

export const connectorList: Handler<PublicOperations["connectorList"]> = async (context) => {
  const { services, identity, query } = context;
  const { enable } = query;
  const where = { tenantId: identity.tenant, ...(enable !== undefined && { enable: enable === "true" }) };
  const rows = await readPage(context, services.db.connector, {
    where,
    orderBy: [{ createdAt: "desc" }, { uid: "desc" }],
  });
  return rows.map(presentConnector);
};

export const connectorGet: Handler<PublicOperations["connectorGet"]> = async ({
  services,
  identity,
  params,
}) => presentConnector(await findObject(connectorObject, services.db, identity.tenant, params.uid));

/** Updates a connector. Omitted fields do not change. */
export const connectorUpdate: ObjectWrite<PublicOperations["connectorUpdate"], Connector> = async (
  context,
) => {
  const { services, body, found, became } = context;
  const stored = found();
  const { uid } = stored;
  const secure = body.secure ?? stored.secure;
  const changed = {
    ...connectorChanges(body),
    address: body.address?.toLowerCase() ?? stored.address,
    ...tlsColumns(services, uid, secure, body.tls, stored),
  };
  await leaveToCommit(services.db, updateRow(services.db, "Connector", { uid }, changed));
  became({ ...stored, ...changed });
  return undefined;
};

export const connectorDelete = deletion("Connector", ["uid"]);

/** Reports that the connector is not connected. This service does not connect to container engines. */
export const connectorInfo: Handler<PublicOperations["connectorInfo"]> = async ({
  services,
  identity,
  params,
}) => {
  await findObject(connectorObject, services.db, identity.tenant, params.uid);
  throw new NotConnectedError("the connector is not connected to its engine");
};
