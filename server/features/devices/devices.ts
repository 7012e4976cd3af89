import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import type { Namespace } from "../../db/generated/sqlite/client.ts";
import { sql } from "../../db/sql.ts";
import { inTransaction, within } from "../../db/transaction.ts";
import { ConflictError, NotFoundError } from "../../errors.ts";
import type { Context, Handler } from "../../http/handler.ts";
import { listRows, sortedBy } from "../../lists/listRows.ts";
import type { Services } from "../../services.ts";
import { billingOf, hasActiveSubscription } from "../billing/record.ts";
import { withTags } from "../tags/tagList.ts";
import { deviceCount } from "./deviceCounts.ts";
import { isAcceptable, isFull } from "./deviceLimit.ts";
import { deviceTable } from "./deviceTable.ts";
import { onlineSince } from "./online.ts";
import { presentDevice } from "./presentDevice.ts";
import { readDevices } from "./readDevices.ts";

/** Platform of the devices that are listed as containers (rules section 7). */
export const CONTAINER = "connector";
const unknown = () => new NotFoundError("no such device");

export const getDevices: Handler<PublicOperations["getDevices"]> = (context) => listDevices(context, false);

export const getContainers: Handler<PublicOperations["getContainers"]> = (context) =>
  listDevices(context, true);

async function listDevices(context: Context<PublicOperations["getDevices"]>, container: boolean) {
  const { services, identity, query, header } = context;
  const { db } = services;
  const tenantId = identity.tenant;
  const table = deviceTable(services);
  const status = query.status
    ? sql`"Device"."status" = ${query.status}`
    : sql`"Device"."status" <> 'removed'`;
  const platform = container
    ? sql`"Device"."infoPlatform" = ${CONTAINER}`
    : sql`"Device"."infoPlatform" <> ${CONTAINER}`;
  const { ids, total } = await listRows(services, table, {
    where: sql`"Device"."tenantId" = ${tenantId} AND ${status} AND ${platform}`,
    counted: deviceCount(tenantId, { status: query.status, container }),
    filter: query.filter,
    trailing: "and",
    sort: sortedBy(table, query.sort_by, sql`"Device"."lastSeen"`, query.order_by, table.id),
    page: query.page,
    perPage: query.per_page,
  });
  header("X-Total-Count", total);
  if (ids.length === 0) return [];
  const [namespace, rows] = await Promise.all([
    db.namespace.findUniqueOrThrow({ where: { tenantId } }),
    readDevices(services, ids),
  ]);
  const full = await isFull(services, namespace);
  const since = onlineSince(services);
  return rows.map((row) =>
    presentDevice(row, { namespace, onlineSince: since, acceptable: isAcceptable(services, row, full) }),
  );
}

export const getDevice: Handler<PublicOperations["getDevice"]> = async ({ services, identity, params }) => {
  const row = await services.db.device.findUnique({
    where: { uid: params.uid, tenantId: identity.tenant },
    include: { ...withTags, namespace: true },
  });
  if (!row) throw unknown();
  return presentOneDevice(services, row);
};

type WholeDevice = Parameters<typeof presentDevice>[0] & { readonly namespace: Namespace };

/** Converts a device to its wire format, with the fields that depend on the time and on its namespace's limit. */
export async function presentOneDevice(services: Services, row: WholeDevice) {
  const full = await isFull(services, row.namespace);
  return presentDevice(row, {
    namespace: row.namespace,
    onlineSince: onlineSince(services),
    acceptable: isAcceptable(services, row, full),
  });
}

/**
 * On a cloud instance without active billing an accepted device becomes a removed one, whose slot still counts (rules
 * section 7).
 */
export const deleteDevice: Handler<PublicOperations["deleteDevice"]> = async (context) => {
  const { services, identity, params } = context;
  const { uid } = params;
  const { tenant: tenantId } = identity;
  await inTransaction(services, async (tx) => {
    const device = await tx.device.findUnique({ where: { uid, tenantId } });
    if (!device || device.status === "removed") throw unknown();
    const limited =
      services.settings.edition === "cloud" &&
      !hasActiveSubscription(await billingOf(within(services, tx), tenantId));
    if (limited && device.status === "accepted") {
      await tx.device.update({
        where: { uid },
        data: {
          status: "removed",
          statusUpdatedAt: services.now(),
          declaredBy: null,
          tagsDeclaredBy: null,
        },
      });
      await tx.session.deleteMany({ where: { deviceUid: uid } });
      await tx.tunnel.deleteMany({ where: { deviceUid: uid } });
    } else {
      await tx.device.delete({ where: { uid } });
    }
    services.enrolments.noteRoom(tenantId);
  });
  return undefined;
};

interface Changes {
  readonly name?: string | undefined;
  readonly public_url?: boolean | undefined;
}

/** @param rivals filter of the other devices whose names are taken */
async function change(
  services: Services,
  tenantId: string,
  uid: string,
  changes: Changes,
  rivals: { readonly status: string | { readonly not: string } },
): Promise<void> {
  const name = changes.name?.toLowerCase();
  await inTransaction(services, async (tx) => {
    const device = await tx.device.findUnique({ where: { uid, tenantId }, select: { name: true } });
    if (!device) throw unknown();
    if (name !== undefined && name !== device.name) {
      const where = { tenantId, name, uid: { not: uid }, ...rivals };
      if (await tx.device.findFirst({ where, select: { uid: true } }))
        throw new ConflictError("name: is taken");
    }
    await tx.device.update({
      where: { uid },
      data: {
        ...(name !== undefined && { name }),
        ...(changes.public_url !== undefined && { publicUrl: changes.public_url }),
      },
    });
  });
}

/** A name must be unique in the namespace (rules section 7, D38); removed devices' names are free. */
export const updateDevice: Handler<PublicOperations["updateDevice"]> = async (context) => {
  const { services, identity, params, body } = context;
  await change(services, identity.tenant, params.uid, body, { status: { not: "removed" } });
  return undefined;
};

/** Only the names of accepted devices count as taken, as the contract says of this older operation. */
export const renameDevice: Handler<PublicOperations["renameDevice"]> = async (context) => {
  const { services, identity, params, body } = context;
  await change(services, identity.tenant, params.uid, body, { status: "accepted" });
  return undefined;
};
