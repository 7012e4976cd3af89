import type { FastifyBaseLogger } from "fastify";
import { readRows, type SqlClient } from "../../db/readRows.ts";
import { type Sql, sql } from "../../db/sql.ts";
import { inSqlTransaction } from "../../db/transaction.ts";
import { activeSince } from "../../features/sessions/active.ts";
import { EVENTS_MAX } from "../../features/sessions/entry.ts";
import { sizeOfChunk } from "../../features/sessions/records.ts";
import type { Services } from "../../services.ts";
import type { LedgerEntry, SessionEntries } from "../protocol.ts";

/** A session, as far as it decides what is kept. */
interface Kept {
  readonly events: number;
  readonly records: number;
  readonly recordedSize: number;
  readonly sessionRecord: boolean;
  /** Whether it was closed so long ago that nothing more is recorded. */
  readonly over: 0 | 1;
}

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
      const reason = await inSqlTransaction(services, "sessions", (tx) => add(services, tx, uid, entries));
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

/** @returns why output is recorded no longer */
async function add(
  services: Services,
  tx: SqlClient,
  uid: string,
  entries: readonly LedgerEntry[],
): Promise<string | undefined> {
  const [session] = await readRows<Kept>(
    tx,
    sql`SELECT "Session"."events", "Session"."records", "Session"."recordedSize", "Namespace"."sessionRecord",
        CASE WHEN "Session"."closedAt" <= ${activeSince(services)} THEN 1 ELSE 0 END AS "over"
      FROM "Session" JOIN "Namespace" ON "Namespace"."tenantId" = "Session"."tenantId"
      WHERE "Session"."uid" = ${uid}`,
  );
  if (session === undefined) return "the session no longer exists";
  const rows = rowsOf(services, uid, session, entries);
  const sets = [...rows.changes];
  if (rows.events.length > 0) {
    sets.push(sql`"events" = ${session.events + rows.events.length}`);
    await tx.$executeRaw(
      sql`INSERT INTO "SessionEvent" ("sessionUid", "sequence", "seat", "type", "at", "data")
        VALUES ${sql.join(rows.events, ", ")}`,
    );
  }
  if (rows.chunks.length > 0) {
    sets.push(
      sql`"recorded" = ${true}`,
      sql`"records" = ${session.records + rows.chunks.length}`,
      sql`"recordedSize" = ${rows.recordedSize}`,
    );
    await tx.$executeRaw(
      sql`INSERT INTO "SessionRecord" ("sessionUid", "seat", "sequence", "time", "message", "width", "height")
        VALUES ${sql.join(rows.chunks, ", ")}`,
    );
  }
  if (sets.length > 0) {
    await tx.$executeRaw(sql`UPDATE "Session" SET ${sql.join(sets, ", ")} WHERE "uid" = ${uid}`);
  }
  return rows.silenced;
}

interface Rows {
  readonly events: Sql[];
  readonly chunks: Sql[];
  /** Assignments of the session's own columns. */
  readonly changes: Sql[];
  recordedSize: number;
  silenced: string | undefined;
}

function rowsOf(services: Services, uid: string, session: Kept, entries: readonly LedgerEntry[]): Rows {
  const limit = services.settings.maximumRecording * 1024 * 1024;
  const rows: Rows = {
    events: [],
    chunks: [],
    changes: [],
    recordedSize: session.recordedSize,
    silenced: undefined,
  };
  const unrecorded = !session.sessionRecord
    ? "the namespace has its sessions not recorded"
    : session.over
      ? "the session is over"
      : undefined;
  for (const entry of entries) {
    if (entry.kind === "authenticated") {
      rows.changes.push(sql`"authenticated" = ${true}`, sql`"lastSeen" = ${services.now()}`);
    } else if (entry.kind === "described") {
      rows.changes.push(sql`"type" = ${entry.type}`);
      if (entry.term !== undefined) rows.changes.push(sql`"term" = ${storable(entry.term)}`);
    } else if (entry.kind === "event") {
      const sequence = session.events + rows.events.length + 1;
      if (sequence > EVENTS_MAX) continue;
      const { seat, type, at, data } = entry;
      rows.events.push(sql`(${uid}, ${sequence}, ${seat}, ${type}, ${at}, ${JSON.stringify(data)})`);
    } else {
      rows.silenced ??= unrecorded;
      if (rows.silenced !== undefined) continue;
      const { seat, text, size } = entry;
      const message = JSON.stringify(text);
      const length = sizeOfChunk(message);
      if (rows.recordedSize + length > limit) {
        rows.silenced = `a session's recording may have ${services.settings.maximumRecording} MiB at most`;
        continue;
      }
      rows.recordedSize += length;
      const sequence = session.records + rows.chunks.length + 1;
      rows.chunks.push(
        sql`(${uid}, ${seat}, ${sequence}, ${services.now()}, ${message}, ${size.width}, ${size.height})`,
      );
    }
  }
  return rows;
}

/** A client's text as both databases store it: PostgreSQL refuses NUL and halves of surrogate pairs. */
const storable = (text: string): string => text.toWellFormed().replaceAll("\0", "\u{fffd}");
