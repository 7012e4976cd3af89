import { randomUUID } from "node:crypto";
import type { connectors, PublicOperations } from "@gatehouse-access/sdk/contract";
import { recordChange } from "../../changes/recordChange.ts";
import type { Connector } from "../../db/generated/sqlite/client.ts";
import { deleteRows, updateRow } from "../../db/sql/rows.ts";
import { leaveToCommit } from "../../db/sql/sql.ts";
import { inTransaction, type Transaction, within } from "../../db/sql/transaction.ts";
import { InvalidError, NotConnectedError, NotFoundError } from "../../errors.ts";
import type { Handler, Handlers, ObjectWrite } from "../../http/handler.ts";
import { pageOf } from "../../lists/page.ts";
import type { Services, SqlServices } from "../../services.ts";
import { requireQuota } from "../requireQuota.ts";
import { declaredConnector, presentConnector } from "./connector.ts";
import { NO_TLS, type StoredTls, sealTls, type TlsMaterial } from "./tlsMaterial.ts";

const unknown = () => new NotFoundError("no such connector");

/**
 * Returns the TLS columns of a connector after a request.
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
  if (stored.sealedTls === null) throw new InvalidError("tls: is required for a secure connector");
  return { sealedTls: stored.sealedTls, tlsDigest: stored.tlsDigest };
}

/**
 * Checks the number of connectors in a namespace.
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
 * Creates a connector and records the change in the audit trail. The response does not identify the connector, so it
 * also contains no revision of the connector.
 */
const connectorCreate: Handler<PublicOperations["connectorCreate"]> = async (context) => {
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
      after: declaredConnector(row),
    });
  });
  return undefined;
};

const connectorList: Handler<PublicOperations["connectorList"]> = async (context) => {
  const { services, identity, query, header } = context;
  const { enable } = query;
  const where = { tenantId: identity.tenant, ...(enable !== undefined && { enable: enable === "true" }) };
  const [total, rows] = await Promise.all([
    services.db.connector.count({ where }),
    services.db.connector.findMany({
      where,
      orderBy: [{ createdAt: "desc" }, { uid: "desc" }],
      ...pageOf(query),
    }),
  ]);
  header("X-Total-Count", total);
  return rows.map(presentConnector);
};

/**
 * Reads a connector of a namespace.
 * @throws NotFoundError the namespace has no such connector
 */
async function find(services: Services, tenantId: string, uid: string) {
  const row = await services.db.connector.findUnique({ where: { uid, tenantId } });
  if (!row) throw unknown();
  return row;
}

const connectorGet: Handler<PublicOperations["connectorGet"]> = async ({ services, identity, params }) =>
  presentConnector(await find(services, identity.tenant, params.uid));

/** Updates a connector. Fields that the request omits do not change. */
const connectorUpdate: ObjectWrite<PublicOperations["connectorUpdate"], Connector> = async (context) => {
  const { services, body, found, became } = context;
  if (found === null) throw unknown();
  const { uid } = found;
  const secure = body.secure ?? found.secure;
  const changed = {
    secure,
    enable: body.enable ?? found.enable,
    address: body.address?.toLowerCase() ?? found.address,
    port: body.port ?? found.port,
    ...tlsColumns(services, uid, secure, body.tls, found),
  };
  await leaveToCommit(services.db, updateRow(services.db, "Connector", { uid }, changed));
  became(declaredConnector(changed));
  return undefined;
};

const connectorDelete: ObjectWrite<PublicOperations["connectorDelete"], Connector> = async (context) => {
  const { services, found, became } = context;
  if (found === null) throw unknown();
  await leaveToCommit(services.db, deleteRows(services.db, "Connector", { uid: found.uid }));
  became(null);
  return undefined;
};

/** Reports that the connector is not connected. This service does not connect to container engines. */
const connectorInfo: Handler<PublicOperations["connectorInfo"]> = async ({ services, identity, params }) => {
  await find(services, identity.tenant, params.uid);
  throw new NotConnectedError("the connector is not connected to its engine");
};

export const connectorHandlers: Handlers<
  Pick<PublicOperations, keyof typeof connectors & keyof PublicOperations>
> = { connectorCreate, connectorList, connectorGet, connectorUpdate, connectorDelete, connectorInfo };
