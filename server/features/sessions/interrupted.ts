import { batchesOf, readRows, type Sql, sql } from "../../db/sql/sql.ts";
import { inSqlTransaction } from "../../db/sql/transaction.ts";
import type { Services } from "../../services.ts";
import { GAP } from "./addEntries.ts";

/**
 * Closes the open sessions whose gateway process or instance has ended. Each session gets a `recording-gap` event
 * without counts. Entries that were not yet written are lost with the process, and their number is unknown.
 * @param which SQL condition that selects the sessions
 * @param at time at which the process or instance ended
 */
export async function closeInterrupted(services: Services, which: Sql, at: Date): Promise<void> {
  const isOpen = sql`"closedAt" IS NULL AND "viaGateway" = ${true} AND ${which}`;
  const rows = await readRows<{ readonly uid: string }>(
    services.db,
    sql`SELECT "uid" FROM "Session" WHERE ${isOpen}`,
  );
  const data = JSON.stringify({ reason: "the gateway process ended; its last entries may be missing" });
  for (const uids of batchesOf(rows.map(({ uid }) => uid))) {
    const these = sql`"uid" IN (${sql.list(uids)})`;
    const count = await inSqlTransaction(services, "sessions", async (tx) => {
      const open = await readRows<{ readonly uid: string }>(
        tx,
        sql`SELECT "uid" FROM "Session" WHERE ${these} AND ${isOpen}`,
      );
      if (open.length === 0) return 0;
      const still = sql`"uid" IN (${sql.list(open.map(({ uid }) => uid))})`;
      // The rows of the sessions are written first: see `addEntries`.
      await tx.$executeRaw(
        sql`UPDATE "Session" SET "events" = "events" + 1, "instanceId" = NULL, "closedAt" = ${at} WHERE ${still}`,
      );
      await tx.$executeRaw(
        sql`INSERT INTO "SessionEvent" ("sessionUid", "sequence", "seat", "type", "at", "data")
          SELECT "uid", "events", 0, ${GAP}, ${at}, ${data} FROM "Session" WHERE ${still}`,
      );
      return open.length;
    });
    services.metrics.recordingGaps.inc(count);
  }
}
