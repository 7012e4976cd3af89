import { randomBytes } from "node:crypto";
import { type PublicOperations, tunnels } from "@gatehouse-access/sdk/contract";
import { SECOND } from "@gatehouse-access/sdk/times";
import { normalAddress } from "../../addresses.ts";
import { type ManagedObject, revisionOf } from "../../changes/managedObject.ts";
import { createOnce } from "../../changes/writeObject.ts";
import type { Tunnel } from "../../db/generated/sqlite/client.ts";
import { countRows, deleteRows, findRow, insertRows } from "../../db/sql/rows.ts";
import { leaveToCommit, type SqlClient, sql } from "../../db/sql/sql.ts";
import { NotFoundError } from "../../errors.ts";
import type { Handler, ObjectWrite } from "../../http/handler.ts";
import type { RequestFacts } from "../../http/listener/requestFacts.ts";
import { readPage } from "../../lists/page.ts";
import type { Services, SqlServices } from "../../services.ts";
import { presenter, wireDate } from "../fields.ts";
import { requireQuota } from "../requireQuota.ts";

/**
 * Expiry time of a permanent tunnel. It is far in the future, so that one comparison finds all tunnels that have not
 * expired.
 */
const NEVER = new Date("9999-12-31T23:59:59.999Z");

/** Returns the expiry time of a tunnel with a lifetime in seconds. With a lifetime of -1, the tunnel is permanent. */
const tunnelExpiry = (createdAt: Date, ttl: number): Date =>
  ttl === -1 ? NEVER : new Date(createdAt.getTime() + ttl * SECOND);

/** Deletes the expired tunnels. */
export async function removeExpiredTunnels(services: Services): Promise<void> {
  await services.db.tunnel.deleteMany({ where: { expiresAt: { lte: services.now() } } });
}

const { tunnel } = tunnels;
const declared = tunnel.pick({ device: true, host: true, port: true, ttl: true });
const device = (row: Pick<Tunnel, "deviceUid">) => row.deviceUid;

/** Returns the declared fields of a tunnel. A tunnel cannot be changed. */
const declaredTunnel = presenter<Tunnel, typeof declared>(declared, { device });

export const tunnelObject: ManagedObject<Tunnel> = {
  missing: "no such tunnel",
  id: (_, { params, result }) => String(params.address ?? result?.address),
  find: (tx, tenantId, address) => findRow(tx, "Tunnel", { address, tenantId }),
  declared: declaredTunnel,
};

/** Converts a tunnel to its wire format (models section 10). */
const presentTunnel = presenter<
  Tunnel,
  typeof tunnel,
  [services: Pick<Services, "settings">, request: RequestFacts]
>(tunnel, {
  full_address: (row, { settings }, { origin }) =>
    `${row.address}.${settings.tunnelsDomain ?? origin.hostname}`,
  namespace: (row) => row.tenantId,
  device,
  expires_in: (row) => wireDate(row.ttl === -1n ? null : row.expiresAt),
  revision: (row) => revisionOf(declaredTunnel(row)),
});

/** Number of random bytes in the address of a tunnel. It is large enough that an attacker cannot guess an address. */
const ADDRESS_BYTES = 16;

interface DeviceKey {
  readonly tenantId: string;
  readonly uid: string;
}

/**
 * Checks that a device exists. A pending device can have tunnels, because the service checks the device again when a
 * client uses a tunnel.
 * @throws NotFoundError the device is not in the namespace, or was removed
 */
async function checkDevice(db: SqlClient, key: DeviceKey): Promise<void> {
  const device = await findRow(db, "Device", key);
  if (device === null || device.status === "removed") throw new NotFoundError("no such device");
}

export const listTunnels: Handler<PublicOperations["listTunnels"]> = async (context) => {
  const { services, identity, params, request } = context;
  await checkDevice(services.db, { tenantId: identity.tenant, uid: params.uid });
  const rows = await readPage(context, services.db.tunnel, {
    where: { deviceUid: params.uid, tenantId: identity.tenant, expiresAt: { gt: services.now() } },
    orderBy: [{ createdAt: "desc" }, { address: "desc" }],
  });
  return rows.map((row) => presentTunnel(row, services, request));
};

/**
 * Checks that a device can have one more tunnel.
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

export const createTunnel: ObjectWrite<PublicOperations["createTunnel"], Tunnel> = async (context) => {
  const { services, identity, params, body, request, creationKey, became } = context;
  const tenantId = identity.tenant;
  await checkDevice(services.db, { tenantId, uid: params.uid });
  const row = await createOnce(context, {
    taken: "address: another tunnel has this address; choose a different address",
    find: async (tx, key) => {
      const existing = await findRow(tx, "Tunnel", { tenantId, creationKey: key });
      if (existing === null || existing.expiresAt > services.now()) return existing;
      // The row of an expired tunnel exists until the service deletes it.
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
  became(row);
  return presentTunnel(row, services, request);
};

export const deleteTunnel: ObjectWrite<PublicOperations["deleteTunnel"], Tunnel> = async (context) => {
  const { services, params, found, became } = context;
  const { address, deviceUid, expiresAt } = found();
  if (deviceUid !== params.uid || expiresAt <= services.now()) throw new NotFoundError(tunnelObject.missing);
  await leaveToCommit(services.db, deleteRows(services.db, "Tunnel", { address }));
  became(null);
  return undefined;
};
