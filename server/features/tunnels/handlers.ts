import { randomBytes } from "node:crypto";
import type { PublicOperations, tunnels } from "@gatehouse-access/sdk/contract";
import { normalAddress } from "../../addresses.ts";
import { createOnce } from "../../changes/createOnce.ts";
import type { Tunnel } from "../../db/generated/sqlite/client.ts";
import { countRows, deleteRows, findRow, insertRows } from "../../db/sql/rows.ts";
import { leaveToCommit, type SqlClient, sql } from "../../db/sql/sql.ts";
import { NotFoundError } from "../../errors.ts";
import type { Handler, Handlers, ObjectWrite } from "../../http/handler.ts";
import { pageOf } from "../../lists/page.ts";
import type { SqlServices } from "../../services.ts";
import { requireQuota } from "../requireQuota.ts";
import { living, tunnelExpiry } from "./expiry.ts";
import { declaredTunnel, presentTunnel } from "./tunnel.ts";

/**
 * Number of random bytes in the address of a tunnel. The number is large enough that an attacker cannot guess an
 * address.
 */
const ADDRESS_BYTES = 16;

interface DeviceKey {
  readonly tenantId: string;
  readonly uid: string;
}

/**
 * Checks that a device exists. A pending device can have tunnels, because the service checks the device again when a
 * client uses a tunnel.
 * @throws NotFoundError the namespace has no such device, or the device was removed
 */
async function checkDevice(db: SqlClient, key: DeviceKey): Promise<void> {
  const device = await findRow(db, "Device", key);
  if (device === null || device.status === "removed") throw new NotFoundError("no such device");
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

/**
 * Checks the number of tunnels of a device.
 * @throws ForbiddenError the device has the maximum number of tunnels (rules section 18, Q4)
 */
function checkNumber({ db, now, settings }: SqlServices, deviceUid: string): Promise<void> {
  const limit = settings.maximumTunnels;
  return requireQuota(
    limit,
    () => countRows(db, "Tunnel", sql`"deviceUid" = ${deviceUid} AND "expiresAt" > ${now()}`),
    `the device has the maximum of ${limit} tunnels: delete one`,
  );
}

const createTunnel: ObjectWrite<PublicOperations["createTunnel"]> = async (context) => {
  const { services, identity, params, body, request, creationKey, became } = context;
  const tenantId = identity.tenant;
  await checkDevice(services.db, { tenantId, uid: params.uid });
  const row = await createOnce(context, {
    taken: "address: is taken",
    find: async (tx, key) => {
      const existing = await findRow(tx, "Tunnel", { tenantId, creationKey: key });
      if (existing === null || existing.expiresAt > services.now()) return existing;
      // The row of an expired tunnel can still exist until the service deletes it.
      await deleteRows(tx, "Tunnel", { address: existing.address });
      return null;
    },
    create: async (tx) => {
      await checkNumber(services, params.uid);
      const createdAt = services.now();
      const created = {
        address: randomBytes(ADDRESS_BYTES).toString("hex"),
        tenantId,
        deviceUid: params.uid,
        host: normalAddress(body.host) ?? body.host,
        port: body.port,
        ttl: BigInt(body.ttl),
        createdAt,
        expiresAt: tunnelExpiry(createdAt, body.ttl),
        creationKey,
      };
      return (await insertRows(tx, "Tunnel", [created])) ? created : null;
    },
  });
  became(declaredTunnel(row));
  return presentTunnel(services, row, request);
};

const deleteTunnel: ObjectWrite<PublicOperations["deleteTunnel"], Tunnel> = async (context) => {
  const { services, params, found, became } = context;
  if (found === null || found.deviceUid !== params.uid || found.expiresAt <= services.now())
    throw new NotFoundError("no such tunnel");
  await leaveToCommit(services.db, deleteRows(services.db, "Tunnel", { address: found.address }));
  became(null);
  return undefined;
};

export const tunnelHandlers: Handlers<Pick<PublicOperations, keyof typeof tunnels & keyof PublicOperations>> =
  { listTunnels, createTunnel, deleteTunnel };
