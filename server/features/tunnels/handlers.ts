import { randomBytes } from "node:crypto";
import type { PublicOperations, tunnels } from "@gatehouse-access/sdk/contract";
import { normalAddress } from "../../addresses.ts";
import { createOnce } from "../../changes/createOnce.ts";
import type { Transaction } from "../../db/sql/transaction.ts";
import { NotFoundError } from "../../errors.ts";
import type { Handler, Handlers } from "../../http/handler.ts";
import { pageOf } from "../../lists/page.ts";
import type { Services } from "../../services.ts";
import { requireQuota } from "../requireQuota.ts";
import { endOf, living } from "./expiry.ts";
import { presentTunnel } from "./tunnel.ts";

/** Random bytes of an address: enough that nobody finds a tunnel by trying. */
const ADDRESS_BYTES = 16;

interface DeviceKey {
  readonly tenantId: string;
  readonly uid: string;
}

/**
 * A pending device may have tunnels too: whether it is connected is checked when a tunnel is used.
 * @throws NotFoundError the namespace has no such device, or it was removed
 */
async function checkDevice(db: Transaction, { tenantId, uid }: DeviceKey): Promise<void> {
  const where = { uid, tenantId, status: { not: "removed" } };
  if ((await db.device.count({ where })) === 0) throw new NotFoundError("no such device");
}

const listTunnels: Handler<PublicOperations["listTunnels"]> = async (context) => {
  const { services, identity, params, query, request, header } = context;
  await checkDevice(services.db, { tenantId: identity.tenant, uid: params.uid });
  const where = { deviceUid: params.uid, tenantId: identity.tenant, ...living(services) };
  const [total, rows] = await Promise.all([
    services.db.tunnel.count({ where }),
    services.db.tunnel.findMany({
      where,
      orderBy: [{ createdAt: "desc" }, { address: "desc" }],
      ...pageOf(query),
    }),
  ]);
  header("X-Total-Count", total);
  return rows.map((row) => presentTunnel(services, row, request));
};

/** @throws ForbiddenError the device has as many tunnels as it may have (rules section 18, Q4) */
function checkNumber(services: Services, tx: Transaction, deviceUid: string): Promise<void> {
  const limit = services.settings.maximumTunnels;
  return requireQuota(
    limit,
    () => tx.tunnel.count({ where: { deviceUid, ...living(services) } }),
    `the device has ${limit} tunnels, the most that it may have: delete one`,
  );
}

const createTunnel: Handler<PublicOperations["createTunnel"]> = async (context) => {
  const { services, identity, params, body, request, creationKey } = context;
  const tenantId = identity.tenant;
  await checkDevice(services.db, { tenantId, uid: params.uid });
  const row = await createOnce(context, {
    taken: "address: is taken",
    find: async (tx, key) => {
      const where = { tenantId_creationKey: { tenantId, creationKey: key } };
      const made = await tx.tunnel.findUnique({ where });
      if (made === null || made.expiresAt > services.now()) return made;
      // It has expired, and only waits to be deleted.
      await tx.tunnel.delete({ where });
      return null;
    },
    create: async (tx) => {
      await checkNumber(services, tx, params.uid);
      const createdAt = services.now();
      return tx.tunnel.create({
        data: {
          address: randomBytes(ADDRESS_BYTES).toString("hex"),
          tenantId,
          deviceUid: params.uid,
          host: normalAddress(body.host) ?? body.host,
          port: body.port,
          ttl: body.ttl,
          createdAt,
          expiresAt: endOf(createdAt, body.ttl),
          creationKey,
        },
      });
    },
  });
  return presentTunnel(services, row, request);
};

const deleteTunnel: Handler<PublicOperations["deleteTunnel"]> = async ({ services, identity, params }) => {
  const { uid: deviceUid, address } = params;
  const { count } = await services.db.tunnel.deleteMany({
    where: { address, deviceUid, tenantId: identity.tenant, ...living(services) },
  });
  if (count === 0) throw new NotFoundError("no such tunnel");
  return undefined;
};

export const tunnelHandlers: Handlers<Pick<PublicOperations, keyof typeof tunnels & keyof PublicOperations>> =
  { listTunnels, createTunnel, deleteTunnel };
