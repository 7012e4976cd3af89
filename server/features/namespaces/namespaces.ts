import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import { createOnce } from "../../changes/createOnce.ts";
import { declaredColumn } from "../../changes/declaredBy.ts";
import { readRows } from "../../db/sql/readRows.ts";
import { sql } from "../../db/sql/sql.ts";
import { inTransaction } from "../../db/sql/transaction.ts";
import { ConflictError, ForbiddenError, isDatabaseError, NotFoundError } from "../../errors.ts";
import type { Handler } from "../../http/handler.ts";
import { listColumns } from "../../lists/listRows.ts";
import type { SqlServices } from "../../services.ts";
import { callingUser } from "../users/callingUser.ts";
import { insertNamespace } from "./insertNamespace.ts";
import { namespaceTable } from "./namespaceTable.ts";
import {
  type CountedNamespace,
  namespaceColumns,
  presentNamespace,
  presentNamespaces,
  readBelongings,
} from "./presentNamespace.ts";
import { WELCOME } from "./welcome.ts";

/** @throws NotFoundError the namespace was deleted since the caller was authorised */
export async function readNamespace(services: SqlServices, tenantId: string) {
  const [rows, belongings] = await Promise.all([
    readRows<CountedNamespace>(
      services.db,
      sql`SELECT ${namespaceColumns} FROM "Namespace" WHERE "tenantId" = ${tenantId}`,
    ),
    readBelongings(services, [tenantId]),
  ]);
  const [namespace] = presentNamespaces(rows, belongings);
  if (!namespace) throw new NotFoundError("no such namespace");
  return namespace;
}

function taken(error: unknown): unknown {
  return isDatabaseError(error, "P2002") ? new ConflictError("name: is taken") : error;
}

/** Lists the namespaces of which the caller is a member; for an API key, its own (rules section 5.4). */
export const getNamespaces: Handler<PublicOperations["getNamespaces"]> = async (context) => {
  const { services, identity, query, header } = context;
  const mine =
    identity.kind === "apikey"
      ? sql`"Namespace"."tenantId" = ${identity.tenant}`
      : sql`"Namespace"."tenantId" IN (SELECT "tenantId" FROM "Member"
          WHERE "userId" = ${identity.userId} AND "status" = 'accepted')`;
  const { rows, total } = await listColumns<CountedNamespace>(services, namespaceTable, namespaceColumns, {
    where: mine,
    filter: query.filter,
    trailing: "or",
    sort: { by: [sql`"Namespace"."createdAt"`, namespaceTable.id], direction: "asc" },
    page: query.page,
    perPage: query.per_page,
  });
  header("X-Total-Count", total);
  if (rows.length === 0) return [];
  const tenantIds = rows.map((row) => row.tenantId);
  return presentNamespaces(rows, await readBelongings(services, tenantIds));
};

export const createNamespace: Handler<PublicOperations["createNamespace"]> = async (context) => {
  const { services, identity, body, creationKey, declaration } = context;
  const user = await callingUser(services, identity);
  const row = await createOnce(context, {
    taken: "name or tenant: is taken",
    // Found by owner, so that a former owner learns nothing of the namespace.
    find: async (tx, made) => {
      const known = await tx.namespace.findUnique({
        where: { ownerId_creationKey: { ownerId: user.id, creationKey: made } },
        select: { tenantId: true, name: true },
      });
      if (known && known.name !== body.name.toLowerCase())
        throw new ConflictError(`Idempotency-Key: made the namespace ${known.name}`);
      return known;
    },
    create: async (tx) => {
      // -1: any number, 0: none (rules section 5.1).
      const limit = user.maxNamespaces;
      if (limit >= 0 && (await tx.namespace.count({ where: { ownerId: user.id } })) >= limit) {
        throw new ForbiddenError(`the user may own ${limit} namespaces at most`);
      }
      if (body.tenant && (await tx.retiredTenant.findUnique({ where: { tenantId: body.tenant } }))) {
        throw new ConflictError("tenant: belonged to a namespace that was deleted");
      }
      return insertNamespace(services, tx, {
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
  return "members" in row ? presentNamespace(row, 0) : readNamespace(services, row.tenantId);
};

export const getNamespace: Handler<PublicOperations["getNamespace"]> = ({ services, identity }) =>
  readNamespace(services, identity.tenant);

/** Changes only the fields that were sent (rules section 5.15). */
export const editNamespace: Handler<PublicOperations["editNamespace"]> = async ({
  services,
  identity,
  body,
}) => {
  const { settings = {} } = body;
  await services.db.namespace
    .update({
      where: { tenantId: identity.tenant },
      data: {
        ...(body.name !== undefined && { name: body.name.toLowerCase() }),
        // Prisma leaves a column as it is where its value is undefined.
        sessionRecord: settings.session_record,
        connectionAnnouncement: settings.connection_announcement,
        deviceProof: settings.device_proof,
        sessionMaxMinutes: settings.session_max_minutes,
        sessionIdleMinutes: settings.session_idle_minutes,
        sessionRecordMode: settings.session_record_mode,
        sessionRecordMegabytes: settings.session_record_megabytes,
        sshForwarding: settings.ssh_forwarding && JSON.stringify(settings.ssh_forwarding),
      },
    })
    .catch((error: unknown) => {
      throw taken(error);
    });
  return readNamespace(services, identity.tenant);
};

/** With the namespace the database deletes all that belongs to it: devices, keys, rules, API keys, members. */
export const deleteNamespace: Handler<PublicOperations["deleteNamespace"]> = async ({
  services,
  identity,
}) => {
  const key = { tenantId: identity.tenant };
  await inTransaction(services, async (tx) => {
    await tx.namespace.delete({ where: key });
    await tx.retiredTenant.create({ data: key });
  });
  return undefined;
};

export const setSessionRecord: Handler<PublicOperations["setSessionRecord"]> = async (context) => {
  const { services, identity, body } = context;
  await services.db.namespace.update({
    where: { tenantId: identity.tenant },
    data: { sessionRecord: body.session_record },
  });
  return undefined;
};
