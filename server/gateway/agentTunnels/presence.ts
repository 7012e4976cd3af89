import { batchesOf, readRows, sql } from "../../db/sql/sql.ts";
import { inSqlTransaction } from "../../db/sql/transaction.ts";
import type { Services } from "../../services.ts";
import type { AgentTunnel } from "./AgentTunnel.ts";

/**
 * Lane of the tunnel writes. Writes in this lane share transactions (see {@link inSqlTransaction}). Separate
 * transactions would take too long when all devices of a fleet reconnect at the same time.
 */
const LANE = "agentTunnels";

/** A device's status and newest tunnel, as stored in the database. */
interface TunnelState {
  readonly uid: string;
  readonly status: string;
  /** The newest tunnel of the device. Null if the device has no tunnel. */
  readonly tunnelId: string | null;
}

/** Returns the stored status and tunnel of the given devices. Omits devices that do not exist. */
export async function statesOf(services: Services, uids: readonly string[]): Promise<TunnelState[]> {
  const states: TunnelState[] = [];
  for (const batch of batchesOf(uids)) {
    states.push(
      ...(await readRows<TunnelState>(
        services.db,
        sql`SELECT "uid", "status", "tunnelId" FROM "Device" WHERE "uid" IN (${sql.list(batch)}) AND "status" <> 'removed'`,
      )),
    );
  }
  return states;
}

/**
 * Records that an instance holds a device's tunnel, and that the device is online. A proven tunnel replaces all earlier
 * tunnels. A tunnel without a proof is recorded only if the device has no other tunnel.
 * @returns false if the device no longer exists, or if the tunnel has no proof and the device has another tunnel
 */
export async function noteOpened(
  services: Services,
  instanceId: string,
  { id, device, proven, transport }: AgentTunnel,
): Promise<boolean> {
  const free = proven ? sql`1 = 1` : sql`"tunnelId" IS NULL`;
  const count = await inSqlTransaction(services, LANE, (tx) =>
    tx.$executeRaw(
      sql`UPDATE "Device" SET "instanceId" = ${instanceId}, "tunnelId" = ${id}, "transport" = ${transport},
        "offline" = ${false}, "lastSeen" = ${services.now()} WHERE "uid" = ${device.uid} AND "status" <> 'removed' AND ${free}`,
    ),
  );
  return count > 0;
}

/** Records that a tunnel has ended. The device is then offline, unless it has a newer tunnel. */
export async function noteClosed(services: Services, { id, device }: AgentTunnel): Promise<void> {
  await inSqlTransaction(services, LANE, (tx) =>
    tx.$executeRaw(
      sql`UPDATE "Device" SET "instanceId" = NULL, "tunnelId" = NULL, "offline" = ${true}
        WHERE "uid" = ${device.uid} AND "tunnelId" = ${id}`,
    ),
  );
}
