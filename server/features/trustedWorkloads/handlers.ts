import { randomBytes } from "node:crypto";
import { type Operations, trustedWorkloads } from "@gatehouse-access/sdk/contract";
import { createOnce } from "../../changes/createOnce.ts";
import { declaredColumn } from "../../changes/managedObject.ts";
import type { TrustedWorkload } from "../../db/generated/sqlite/client.ts";
import { countRows, deleteRows, findRow, hasKey, insertRows, updateRow } from "../../db/sql/rows.ts";
import { leaveToCommit } from "../../db/sql/sql.ts";
import { ConflictError, isTaken, NotFoundError } from "../../errors.ts";
import { actorIdOf } from "../../http/access/identity.ts";
import type { Context, Handler, Handlers, ObjectWrite } from "../../http/handler.ts";
import { pageOf } from "../../lists/page.ts";
import { requireQuota } from "../requireQuota.ts";
import { exchangeWorkloadToken } from "./exchange.ts";
import { renewWorkloadSession } from "./session.ts";
import { declaredWorkload, presentWorkload, type WorkloadSettings } from "./trustedWorkload.ts";

const { TRUSTED_WORKLOADS_MAX } = trustedWorkloads;

const noSuchWorkload = () => new NotFoundError("no such workload");
const NAME_TAKEN = "name: is used by another workload";

/** Returns the columns of a workload. The claims are sorted, so that their order is no change. */
const columnsOf = (body: Context<Operations["createTrustedWorkload"]>["body"]): WorkloadSettings => ({
  name: body.name,
  issuer: body.issuer,
  audience: body.audience,
  claims: JSON.stringify(
    Object.fromEntries(Object.entries(body.claims).sort(([a], [b]) => (a < b ? -1 : 1))),
  ),
  role: body.role,
  maxSessionMinutes: body.max_session_minutes,
  singleUse: body.single_use,
});

const createTrustedWorkload: ObjectWrite<Operations["createTrustedWorkload"]> = async (context) => {
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
        ...columnsOf(body),
        createdBy: actorIdOf(caller),
        createdAt: now,
        updatedAt: now,
        creationKey,
        declaredBy: declaredColumn(declaration, now),
      };
      return (await insertRows(tx, "TrustedWorkload", [created])) ? created : null;
    },
  });
  context.became(declaredWorkload(row));
  return presentWorkload(row);
};

const listTrustedWorkloads: Handler<Operations["listTrustedWorkloads"]> = async (context) => {
  const { services, identity, query, header } = context;
  const where = { tenantId: identity.tenant };
  const [total, rows] = await Promise.all([
    services.db.trustedWorkload.count({ where }),
    services.db.trustedWorkload.findMany({ where, orderBy: { name: "asc" }, ...pageOf(query) }),
  ]);
  header("X-Total-Count", total);
  return rows.map(presentWorkload);
};

const getTrustedWorkload: Handler<Operations["getTrustedWorkload"]> = async (context) => {
  const { services, identity, params } = context;
  const row = await findRow(services.db, "TrustedWorkload", { tenantId: identity.tenant, id: params.id });
  if (row === null) throw noSuchWorkload();
  return presentWorkload(row);
};

const updateTrustedWorkload: ObjectWrite<Operations["updateTrustedWorkload"], TrustedWorkload> = async ({
  services,
  body,
  found,
  became,
}) => {
  if (found === null) throw noSuchWorkload();
  const { tenantId, id } = found;
  const changed = { ...columnsOf(body), updatedAt: services.now() };
  await updateRow(services.db, "TrustedWorkload", { tenantId, id }, changed).catch((error: unknown) => {
    throw isTaken(error) ? new ConflictError(NAME_TAKEN) : error;
  });
  const row = { ...found, ...changed };
  became(declaredWorkload(row));
  return presentWorkload(row);
};

const deleteTrustedWorkload: ObjectWrite<Operations["deleteTrustedWorkload"], TrustedWorkload> = async ({
  services: { db },
  found,
  became,
}) => {
  if (found === null) throw noSuchWorkload();
  const { tenantId, id } = found;
  await leaveToCommit(db, deleteRows(db, "TrustedWorkload", { tenantId, id }));
  became(null);
  return undefined;
};

export const trustedWorkloadHandlers: Handlers<
  Pick<Operations, keyof typeof trustedWorkloads & keyof Operations>
> = {
  createTrustedWorkload,
  listTrustedWorkloads,
  getTrustedWorkload,
  updateTrustedWorkload,
  deleteTrustedWorkload,
  exchangeWorkloadToken,
  renewWorkloadSession,
};
