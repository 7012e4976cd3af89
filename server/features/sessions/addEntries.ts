import { readRows, type SqlClient } from "../../db/readRows.ts";
import { type Sql, sql } from "../../db/sql.ts";
import type { Services } from "../../services.ts";
import { activeSince } from "./active.ts";
import type { SessionKey } from "./changeSession.ts";

/** Maximum number of events of a session: a logged-in user can cause any number. */
export const EVENTS_MAX = 1000;
/** Bytes that a chunk counts beside its text: otherwise the number of empty chunks would have no limit. */
const CHUNK_OVERHEAD = 128;

/** An addition to the record of a session. */
export type SessionEntry =
  /** The device has let the login in. */
  | { readonly kind: "authenticated" }
  /** The kind of the session, known with the first request of its client. */
  | { readonly kind: "described"; readonly type: string; readonly term?: string }
  | {
      readonly kind: "event";
      readonly seat: number;
      readonly type: string;
      readonly at: Date;
      readonly data: object;
    }
  /** Output of a seat, with the size of its terminal in characters. */
  | {
      readonly kind: "output";
      readonly seat: number;
      readonly text: string;
      readonly size: { readonly width: number; readonly height: number };
    };

/** Entries that the record of a session does not take. */
interface Outcome {
  /** Events beyond the maximum number. */
  readonly droppedEvents: number;
  /** Why output was not recorded; undefined: all of it was. */
  readonly unrecorded: string | undefined;
}

/** A session, as far as it decides what is kept. */
interface Kept {
  readonly events: number;
  readonly records: number;
  readonly recordedSize: number;
  readonly sessionRecord: boolean;
  /** Whether it was closed so long ago that nothing more is recorded. */
  readonly over: 0 | 1;
}

/** Values of entries, as SQL. */
interface Rows {
  readonly events: Sql[];
  readonly chunks: Sql[];
  /** Assignments of the session's own columns. */
  readonly assignments: Sql[];
}

/**
 * Adds entries to the record of a session (rules section 17.5 and 17.6). A closed session accepts late output for as
 * long as it would have stayed active.
 * @returns undefined: no such session
 * @throws DriverAdapterError the database refuses an entry
 */
export async function addEntries(
  services: Services,
  tx: SqlClient,
  key: SessionKey,
  entries: readonly SessionEntry[],
): Promise<Outcome | undefined> {
  const session = await find(services, tx, key);
  if (session === undefined) return undefined;
  const limit = services.settings.maximumRecording * 1024 * 1024;
  const rows: Rows = { events: [], chunks: [], assignments: [] };
  let { recordedSize } = session;
  let droppedEvents = 0;
  let unrecorded: string | undefined;
  const refusal = !session.sessionRecord
    ? "the namespace has its sessions not recorded"
    : session.over
      ? "the session is over"
      : undefined;
  const record = ({ seat, text, size }: Extract<SessionEntry, { kind: "output" }>) => {
    const message = JSON.stringify(text);
    const length = Buffer.byteLength(message) + CHUNK_OVERHEAD;
    if (recordedSize + length > limit) {
      return `a session's recording may have ${services.settings.maximumRecording} MiB at most`;
    }
    recordedSize += length;
    const sequence = session.records + rows.chunks.length + 1;
    rows.chunks.push(
      sql`(${key.uid}, ${seat}, ${sequence}, ${services.now()}, ${message}, ${BigInt(size.width)},
        ${BigInt(size.height)})`,
    );
    return undefined;
  };
  for (const entry of entries) {
    if (entry.kind === "output") unrecorded ??= refusal ?? record(entry);
    else if (entry.kind === "authenticated") {
      const lastSeen = sql`CASE WHEN "closedAt" IS NULL THEN ${services.now()} ELSE "lastSeen" END`;
      rows.assignments.push(sql`"authenticated" = ${true}`, sql`"lastSeen" = ${lastSeen}`);
    } else if (entry.kind === "described") {
      rows.assignments.push(sql`"type" = ${entry.type}`);
      if (entry.term !== undefined) rows.assignments.push(sql`"term" = ${storable(entry.term)}`);
    } else {
      const sequence = session.events + rows.events.length + 1;
      if (sequence > EVENTS_MAX) droppedEvents += 1;
      else {
        const { seat, type, at, data } = entry;
        rows.events.push(sql`(${key.uid}, ${sequence}, ${seat}, ${type}, ${at}, ${JSON.stringify(data)})`);
      }
    }
  }
  if (rows.events.length > 0) {
    rows.assignments.push(sql`"events" = ${session.events + rows.events.length}`);
  }
  if (rows.chunks.length > 0) {
    rows.assignments.push(
      sql`"recorded" = ${true}`,
      sql`"records" = ${session.records + rows.chunks.length}`,
      sql`"recordedSize" = ${recordedSize}`,
    );
  }
  await write(tx, key.uid, rows);
  return { droppedEvents, unrecorded };
}

async function find(services: Services, tx: SqlClient, key: SessionKey): Promise<Kept | undefined> {
  const { uid, tenantId, deviceUid } = key;
  const owners = [
    ...(tenantId === undefined ? [] : [sql`"Session"."tenantId" = ${tenantId}`]),
    ...(deviceUid === undefined ? [] : [sql`"Session"."deviceUid" = ${deviceUid}`]),
  ];
  const [session] = await readRows<Kept>(
    tx,
    sql`SELECT "Session"."events", "Session"."records", "Session"."recordedSize", "Namespace"."sessionRecord",
        CASE WHEN "Session"."closedAt" <= ${activeSince(services)} THEN 1 ELSE 0 END AS "over"
      FROM "Session" JOIN "Namespace" ON "Namespace"."tenantId" = "Session"."tenantId"
      WHERE ${sql.join([sql`"Session"."uid" = ${uid}`, ...owners], " AND ")}`,
  );
  return session;
}

/**
 * The session comes first: its row makes additions at a time conflict, and a conflict is tried again. Their sequences
 * would violate a unique index, and that is an error.
 */
async function write(tx: SqlClient, uid: string, { events, chunks, assignments }: Rows): Promise<void> {
  if (assignments.length > 0) {
    await tx.$executeRaw(sql`UPDATE "Session" SET ${sql.join(assignments, ", ")} WHERE "uid" = ${uid}`);
  }
  if (events.length > 0) {
    await tx.$executeRaw(
      sql`INSERT INTO "SessionEvent" ("sessionUid", "sequence", "seat", "type", "at", "data")
        VALUES ${sql.join(events, ", ")}`,
    );
  }
  if (chunks.length > 0) {
    await tx.$executeRaw(
      sql`INSERT INTO "SessionRecord" ("sessionUid", "seat", "sequence", "time", "message", "width", "height")
        VALUES ${sql.join(chunks, ", ")}`,
    );
  }
}

/** A client's text as both databases store it: PostgreSQL refuses NUL and halves of surrogate pairs. */
const storable = (text: string): string => text.toWellFormed().replaceAll("\0", "\u{fffd}");
