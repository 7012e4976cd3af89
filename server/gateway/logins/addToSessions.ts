import type { FastifyBaseLogger } from "fastify";
import { inSqlTransaction } from "../../db/transaction.ts";
import { addEntries } from "../../features/sessions/addEntries.ts";
import type { Services } from "../../services.ts";
import type { SessionEntries } from "../protocol.ts";

/**
 * Adds entries to the records of sessions. The sessions share transactions, and each succeeds or fails by itself.
 * @returns the sessions whose output is no longer recorded: they no longer exist, their recordings have reached the limit,
 * or recording is turned off
 * @throws DriverAdapterError the database refuses the entries of a session
 */
export async function addToSessions(
  services: Services,
  sessions: readonly SessionEntries[],
  log: () => FastifyBaseLogger,
): Promise<string[]> {
  const silenced: string[] = [];
  const outcomes = await Promise.allSettled(
    sessions.map(async ({ uid, entries }) => {
      const added = await inSqlTransaction(services, "sessions", (tx) =>
        addEntries(services, tx, { uid }, entries),
      );
      const reason = added === undefined ? "the session no longer exists" : added.unrecorded;
      if (reason === undefined) return;
      log().warn({ session: uid, reason }, "something of a session is not kept");
      silenced.push(uid);
    }),
  );
  for (const outcome of outcomes) {
    if (outcome.status === "rejected") throw outcome.reason;
  }
  return silenced;
}
