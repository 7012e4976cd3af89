import { randomBytes } from "node:crypto";
import { type Operations, trustedWorkloads } from "@gatehouse-access/sdk/contract";
import { declaredColumn, findObject, type ManagedObject, revisionOf } from "../../changes/managedObject.ts";
import { createOnce, deletion } from "../../changes/writeObject.ts";
import type { TrustedWorkload } from "../../db/generated/sqlite/client.ts";
import { countRows, findRow, hasKey, insertRows, updateRow } from "../../db/sql/rows.ts";
import { ConflictError, isTaken } from "../../errors.ts";
import { actorIdOf } from "../../http/access/identity.ts";
import type { Handler, ObjectWrite } from "../../http/handler.ts";
import { readPage } from "../../lists/page.ts";
import { columnsFrom, presenter } from "../fields.ts";
import { requireQuota } from "../requireQuota.ts";

const { trustedWorkload, TRUSTED_WORKLOADS_MAX } = trustedWorkloads;
const settings = trustedWorkloads.updateTrustedWorkload.body;

/** Returns the columns for the settings of a workload. */
export const workloadColumns = columnsFrom<TrustedWorkload, typeof settings>(settings, {});

const declaredWorkload = presenter<TrustedWorkload, typeof settings>(settings, {});

export const trustedWorkloadObject: ManagedObject<TrustedWorkload> = {
  missing: "no such workload",
  id: (_, { params, result }) => params.id ?? String(result?.id),
  find: (tx, tenantId, id) => findRow(tx, "TrustedWorkload", { tenantId, id }),
  declared: declaredWorkload,
  declare: (tx, tenantId, id, declaredBy) =>
    updateRow(tx, "TrustedWorkload", { tenantId, id }, { declaredBy }),
};

/** Converts a workload to its wire format. */
export const presentWorkload = presenter<TrustedWorkload, typeof trustedWorkload>(trustedWorkload, {
  revision: (row) => revisionOf(declaredWorkload(row)),
});

const NAME_TAKEN = "name: another trusted workload has this name; choose a different name";

export const createTrustedWorkload: ObjectWrite<
  Operations["createTrustedWorkload"],
  TrustedWorkload
> = async (context) => {
  const { services, identity, body, creationKey, declaration } = context;
  const { tenant: tenantId, caller } = identity;
  const row = await createOnce(context, {
    taken: NAME_TAKEN,
    find: (tx, key) => findRow(tx, "TrustedWorkload", { tenantId, creationKey: key }),
    create: async (tx) => {
      await requireQuota(
        TRUSTED_WORKLOADS_MAX,
        () => countRows(tx, "TrustedWorkload", hasKey({ tenantId }), TRUSTED_WORKLOADS_MAX),
        `the namespace has the maximum of ${TRUSTED_WORKLOADS_MAX} trusted workloads: delete one`,
      );
      const now = services.now();
      const created = {
        id: randomBytes(12).toString("hex"),
        tenantId,
        ...workloadColumns(body),
        createdBy: actorIdOf(caller),
        createdAt: now,
        updatedAt: now,
        creationKey,
        declaredBy: declaredColumn(declaration, now),
      };
      return (await insertRows(tx, "TrustedWorkload", [created])) ? created : null;
    },
  });
  context.became(row);
  return presentWorkload(row);
};

export const listTrustedWorkloads: Handler<Operations["listTrustedWorkloads"]> = async (context) => {
  const { services, identity } = context;
  const where = { tenantId: identity.tenant };
  const rows = await readPage(context, services.db.trustedWorkload, { where, orderBy: { name: "asc" } });
  return rows.map((row) => presentWorkload(row));
};

export const getTrustedWorkload: Handler<Operations["getTrustedWorkload"]> = async (context) => {
  const { services, identity, params } = context;
  return presentWorkload(await findObject(trustedWorkloadObject, services.db, identity.tenant, params.id));
};

export const updateTrustedWorkload: ObjectWrite<
  Operations["updateTrustedWorkload"],
  TrustedWorkload
> = async ({ services, body, found, became }) => {
  const stored = found();
  const { tenantId, id } = stored;
  const changed = { ...workloadColumns(body), updatedAt: services.now() };
  await updateRow(services.db, "TrustedWorkload", { tenantId, id }, changed).catch((error: unknown) => {
    throw isTaken(error) ? new ConflictError(NAME_TAKEN) : error;
  });
  const row = { ...stored, ...changed };
  became(row);
  return presentWorkload(row);
};

export const deleteTrustedWorkload = deletion("TrustedWorkload", ["tenantId", "id"]);
