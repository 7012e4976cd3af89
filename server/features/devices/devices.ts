import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import { readWireRows } from "../../db/sql/readRows.ts";
import { sql } from "../../db/sql/sql.ts";
import { inTransaction, within } from "../../db/sql/transaction.ts";
import { ConflictError, NotFoundError } from "../../errors.ts";
import type { Context, Handler } from "../../http/handler.ts";
import { listColumns, sortedBy } from "../../lists/listRows.ts";
import type { Services } from "../../services.ts";
import { billingOf, hasActiveSubscription } from "../billing/record.ts";
import { deviceCount } from "./deviceCounts.ts";
import { deviceTable } from "./deviceTable.ts";
import { shownTo } from "./presentDevice.ts";
import { type DeviceRow, deviceColumns, presentDevices, readDevices } from "./readDevices.ts";

/** Platform of the devices that are listed as containers (rules section 7). */
export const CONTAINER = "connector";
const unknown = () => new NotFoundError("no such device");

export const getDevices: Handler<PublicOperations["getDevices"]> = (context) => listDevices(context, false);

export const getContainers: Handler<PublicOperations["getContainers"]> = (context) =>
  listDevices(context, true);

async function listDevices(context: Context<PublicOperations["getDevices"]>, container: boolean) {
  const { services, identity, query, header } = context;
  const tenantId = identity.tenant;
  const table = deviceTable(services, tenantId);
  const status = query.status
    ? sql`"Device"."status" = ${query.status}`
    : sql`"Device"."status" <> 'removed'`;
  const platform = container
    ? sql`"Device"."infoPlatform" = ${CONTAINER}`
    : sql`"Device"."infoPlatform" <> ${CONTAINER}`;
  const request = {
    where: sql`"Device"."tenantId" = ${tenantId} AND ${status} AND ${platform}`,
    counted: deviceCount(tenantId, { status: query.status, container }),
    filter: query.filter,
    trailing: "and" as const,
    sort: sortedBy(table, query.sort_by, sql`"Device"."lastSeen"`, query.order_by, table.id),
    page: query.page,
    perPage: query.per_page,
  };
  const columns = deviceColumns(services, tenantId);
  const { rows, total } = await listColumns<DeviceRow>(services, table, columns, request, readWireRows);
  header("X-Total-Count", total);
  return presentDevices(services, rows).map((device) => shownTo(identity.role, device));
}

export const getDevice: Handler<PublicOperations["getDevice"]> = async ({ services, identity, params }) => {
  const [device] = await readDevices(services, identity.tenant, [params.uid]);
  if (!device) throw unknown();
  return shownTo(identity.role, device);
};

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
    services.enrolments.noteFreedQuota(tenantId);
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
