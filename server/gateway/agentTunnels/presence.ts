import { batchesOf, readRows, sql } from "../../db/sql/sql.ts";
import { inSqlTransaction } from "../../db/sql/transaction.ts";
import type { Services } from "../../services.ts";
import type { AgentTunnel } from "./AgentTunnel.ts";

/** Writes of one lane share transactions: a fleet connects again at once. */
const LANE = "agentTunnels";

/** What the database knows of a device and its tunnel. */
interface TunnelState {
  readonly uid: string;
  readonly status: string;
  /** The newest tunnel of the device; null while it has none. */
  readonly tunnelId: string | null;
}

/** The devices among the given ones that exist. */
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
 * Notes that an instance holds a device's tunnel, and that the device is online. A proven tunnel ends all earlier ones;
 * one without a proof is noted where the device has no other.
 * @returns false if the device no longer exists, or has another tunnel
 */
export async function noteOpened(
  services: Services,
  instanceId: string,
  { id, device, proven }: AgentTunnel,
): Promise<boolean> {
  const free = proven ? sql`1 = 1` : sql`"tunnelId" IS NULL`;
  const count = await inSqlTransaction(services, LANE, (tx) =>
    tx.$executeRaw(
      sql`UPDATE "Device" SET "instanceId" = ${instanceId}, "tunnelId" = ${id}, "offline" = ${false},
        "lastSeen" = ${services.now()} WHERE "uid" = ${device.uid} AND "status" <> 'removed' AND ${free}`,
    ),
  );
  return count > 0;
}

/** Notes that a tunnel has ended. The device is offline, unless it has a newer one. */
export async function noteClosed(services: Services, { id, device }: AgentTunnel): Promise<void> {
  await inSqlTransaction(services, LANE, (tx) =>
    tx.$executeRaw(
      sql`UPDATE "Device" SET "instanceId" = NULL, "tunnelId" = NULL, "offline" = ${true}
        WHERE "uid" = ${device.uid} AND "tunnelId" = ${id}`,
    ),
  );
}
