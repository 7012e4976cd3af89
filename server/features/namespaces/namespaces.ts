import { type PublicOperations, TOTAL_COUNT } from "@gatehouse-access/sdk/contract";
import { declaredColumn } from "../../changes/managedObject.ts";
import { createOnce } from "../../changes/writeObject.ts";
import type { Namespace } from "../../db/generated/sqlite/client.ts";
import { countRows, deleteRows, findRow, hasKey, insertRows, updateRow } from "../../db/sql/rows.ts";
import { readRows, readWireRows, sql } from "../../db/sql/sql.ts";
import { ConflictError, ForbiddenError, isTaken, NotFoundError } from "../../errors.ts";
import { ownerOf } from "../../http/access/identity.ts";
import { membershipLasts } from "../../http/access/membership.ts";
import type { Handler, ObjectWrite } from "../../http/handler.ts";
import { inPieces } from "../../http/limits/pieces.ts";
import { listColumns } from "../../lists/listRows.ts";
import type { SqlServices } from "../../services.ts";
import { callingUser } from "../users/callingUser.ts";
import { insertNamespace, WELCOME } from "./insertNamespace.ts";
import { namespaceTable } from "./namespaceTable.ts";
import { namespaceObject, settingsChanges } from "./objects.ts";
import {
  type CountedNamespace,
  namespaceColumns,
  presentNamespace,
  presentNamespaces,
  readDetails,
} from "./presentNamespace.ts";

/**
 * Reads a namespace in wire format.
 * @throws NotFoundError the namespace was deleted after the caller was authorized
 */
export async function readNamespace(services: SqlServices, tenantId: string) {
  const [rows, details] = await Promise.all([
    readWireRows<CountedNamespace>(
      services.db,
      sql`SELECT ${namespaceColumns} FROM "Namespace" WHERE "tenantId" = ${tenantId}`,
    ),
    readDetails(services, [tenantId]),
  ]);
  const [namespace] = presentNamespaces(rows, details);
  if (!namespace) throw new NotFoundError(namespaceObject.missing);
  return namespace;
}

/**
 * Maximum number of members that the service reads in one turn of the event loop. A single namespace with more members
 * is read in one turn.
 */
const MEMBERS_AT_ONCE = 500;

/** Returns the number of members of each namespace, by tenant id. */
async function memberCounts(
  services: SqlServices,
  tenantIds: readonly string[],
): Promise<Map<string, number>> {
  const rows = await readRows<{ tenantId: string; members: number | bigint }>(
    services.db,
    sql`SELECT "tenantId", COUNT(*) AS "members" FROM "Member"
      WHERE "tenantId" IN (${sql.list(tenantIds)}) GROUP BY "tenantId"`,
  );
  return new Map(rows.map(({ tenantId, members }) => [tenantId, Number(members)]));
}

/**
 * Lists the namespaces of the caller. For a user, these are all namespaces in which the user is a member. For an API
 * key, this is the namespace of the key (rules section 5.4).
 */
export const getNamespaces: Handler<PublicOperations["getNamespaces"]> = async (context) => {
  const { services, identity, query, header } = context;
  const visible =
    identity.kind === "user"
      ? sql`"Namespace"."tenantId" IN (SELECT "tenantId" FROM "Member"
          WHERE "userId" = ${identity.userId} AND "status" = 'accepted'
            AND ${membershipLasts(services.accessTime())})`
      : sql`"Namespace"."tenantId" = ${identity.tenant}`;
  const { rows, total } = await listColumns<CountedNamespace>(services, namespaceTable, namespaceColumns, {
    where: visible,
    filter: query.filter,
    trailing: "or",
    sort: { by: [sql`"Namespace"."createdAt"`, namespaceTable.id], direction: "asc" },
    page: query.page,
    perPage: query.per_page,
  });
  header(TOTAL_COUNT, total);
  if (rows.length === 0) return [];
  const members = await memberCounts(
    services,
    rows.map((row) => row.tenantId),
  );
  const sizeOf = ({ tenantId }: CountedNamespace) => members.get(tenantId) ?? 0;
  return inPieces(rows, { owner: ownerOf(identity), sizeOf, most: MEMBERS_AT_ONCE }, async (group) => {
    const tenantIds = group.map((row) => row.tenantId);
    return presentNamespaces(group, await readDetails(services, tenantIds));
  });
};

export const createNamespace: ObjectWrite<PublicOperations["createNamespace"], Namespace> = async (
  context,
) => {
  const { services, identity, body, creationKey, declaration } = context;
  const user = await callingUser(services, identity);
  const row = await createOnce(context, {
    taken: "another namespace has this name or tenant id; choose a different one",
    // Only namespaces that the user owns are searched, so that a former owner cannot read the namespace.
    find: async (tx, key) => {
      const known = await findRow(tx, "Namespace", { ownerId: user.id, creationKey: key });
      if (known && known.name !== body.name.toLowerCase())
        throw new ConflictError(
          `this Idempotency-Key already created the namespace ${known.name}; send a new Idempotency-Key`,
        );
      return known;
    },
    create: async (tx) => {
      // With a limit of -1, the user may own any number of namespaces. With a limit of 0, the user may own none (rules
      // section 5.1).
      const limit = user.maxNamespaces;
      if (limit >= 0 && (await countRows(tx, "Namespace", hasKey({ ownerId: user.id }))) >= limit) {
        throw new ForbiddenError(`the user can own at most ${limit} namespaces`);
      }
      if (body.tenant && (await findRow(tx, "RetiredTenant", { tenantId: body.tenant }))) {
        throw new ConflictError("tenant belongs to a deleted namespace");
      }
      return insertNamespace(services, {
        name: body.name.toLowerCase(),
        ownerId: user.id,
        ...(body.tenant && { tenantId: body.tenant }),
        type: body.type || "team",
        sessionRecord: true,
        connectionAnnouncement: services.settings.edition === "community" ? WELCOME : "",
        creationKey,
        declaredBy: declaredColumn(declaration, services.now()),
      });
    },
  });
  return "members" in row ? presentNamespace(row, row.members, 0) : readNamespace(services, row.tenantId);
};

export const getNamespace: Handler<PublicOperations["getNamespace"]> = ({ services, identity }) =>
  readNamespace(services, identity.tenant);

/** Updates a namespace. Omitted fields do not change (rules section 5.15). */
export const editNamespace: ObjectWrite<PublicOperations["editNamespace"], Namespace> = async (context) => {
  const { services, identity, body, found } = context;
  const stored = found();
  const { tenant: tenantId } = identity;
  const changed = { ...settingsChanges(body.settings ?? {}), name: body.name?.toLowerCase() ?? stored.name };
  await updateRow(services.db, "Namespace", { tenantId }, changed).catch((error: unknown) => {
    throw isTaken(error)
      ? new ConflictError("name: another namespace has this name; choose a different name")
      : error;
  });
  return readNamespace(services, tenantId);
};

/**
 * Deletes a namespace. The database also deletes all objects of the namespace: devices, keys, rules, API keys and
 * members.
 */
export const deleteNamespace: ObjectWrite<PublicOperations["deleteNamespace"], Namespace> = async (
  context,
) => {
  const { services, identity, became } = context;
  const key = { tenantId: identity.tenant };
  await deleteRows(services.db, "Namespace", key);
  await insertRows(services.db, "RetiredTenant", [key]);
  became(null);
  return undefined;
};

export const setSessionRecord: ObjectWrite<PublicOperations["setSessionRecord"], Namespace> = async (
  context,
) => {
  const { services, identity, body } = context;
  const { tenant: tenantId } = identity;
  await updateRow(services.db, "Namespace", { tenantId }, { sessionRecord: body.session_record });
  return undefined;
};
