import type { FastifyBaseLogger } from "fastify";
import { isOfValues, type Outage } from "../../db/outage.ts";
import { readRows, type Sql, type SqlClient, sql } from "../../db/sql/sql.ts";
import { inSqlTransaction } from "../../db/sql/transaction.ts";
import { outageOfWork } from "../../errors.ts";
import type { Services } from "../../services.ts";
import { activeSince } from "./active.ts";
import type { SessionKey } from "./changeSession.ts";

/**
 * Event types that describe the commands of a session and the results of the commands. All events of these types are
 * stored.
 */
const KEPT: ReadonlySet<string> = new Set(
  "shell exec subsystem direct-tcpip pty-req exit-status exit-signal transfer".split(" "),
);
/** Type of the event that is stored in place of lost entries. */
export const GAP = "recording-gap";
/**
 * Maximum number of bounded events that are stored for a session. All event types that are not in `KEPT` are bounded,
 * such as changes of the terminal size. Their number is limited, because a logged-in user can cause any number of them.
 */
export const BOUNDED_EVENTS_MAX = 1000;
/** Type of the single event that is stored in place of all bounded events above the maximum. */
const CAPPED = "events-capped";
/**
 * Bytes that each chunk adds to the recorded size, in addition to its text. Without this overhead, a session could
 * record any number of empty chunks.
 */
const CHUNK_OVERHEAD = 128;

/** The output stream of a command. A terminal has only the stream `stdout`. */
export type OutputStream = "stdout" | "stderr";

/** An addition to the record of a session. */
export type SessionEntry =
  /** The device accepted the login. */
  | { readonly kind: "authenticated" }
  /** The type of the session. The first request of the SSH client determines the type. */
  | { readonly kind: "described"; readonly type: string; readonly term?: string }
  | {
      readonly kind: "event";
      readonly seat: number;
      readonly type: string;
      readonly at: Date;
      readonly data: object;
    }
  | OutputEntry
  | RecordingGap;

type EventEntry = Extract<SessionEntry, { kind: "event" }>;

/** Output of a seat, which is a channel of the session. The size of the terminal is in characters. */
export interface OutputEntry {
  readonly kind: "output";
  /** Time at which the first bytes of the output arrived. During an outage, the output is written later. */
  readonly at: Date;
  readonly seat: number;
  readonly stream: OutputStream;
  readonly text: string;
  readonly size: { readonly width: number; readonly height: number };
}

/** Entries of a seat that were lost, because the service could not write them for too long a time. */
export interface RecordingGap {
  readonly kind: "gap";
  readonly seat: number;
  /** Times of the first and the last lost entry. */
  readonly from: Date;
  readonly to: Date;
  /** Number of lost entries, and number of bytes of lost output. */
  readonly entries: number;
  readonly bytes: number;
  /** Terminal size of the lost output; undefined if no output was lost. */
  readonly size: OutputEntry["size"] | undefined;
}

/** The entries that a call of {@link addEntries} did not store. */
interface NotStored {
  /**
   * Number of events that were discarded because the session already has {@link BOUNDED_EVENTS_MAX} bounded events.
   */
  readonly droppedEvents: number;
  /** The reason why output was not recorded. Undefined if all output was recorded. */
  readonly unrecorded: string | undefined;
}

/**
 * The current counts and settings of a session and its namespace. They determine whether further entries are stored.
 */
interface Kept {
  readonly events: number;
  readonly boundedEvents: number;
  readonly records: number;
  readonly recordedSize: number;
  readonly entriesWritten: number;
  readonly sessionRecord: boolean;
  readonly sessionRecordMegabytes: number;
  /**
   * A Boolean value as a number: 1 if the session was closed so long ago that its output is no longer recorded,
   * otherwise 0.
   */
  readonly over: 0 | 1;
}

/** The rows and column values to write, as SQL. */
interface Rows {
  readonly events: Sql[];
  readonly chunks: Sql[];
  /** SQL assignments that update the session's row. */
  readonly assignments: Sql[];
}

/**
 * Adds entries to the record of a session (rules section 17.5 and 17.6). After a session is closed, its output is still
 * recorded for a short time, within the time window of {@link activeSince}.
 * @param after number of entries that the session had before these entries. Set it if the caller repeats failed writes:
 *   entries that an earlier write stored are then not stored again. Such a caller must be the only writer of the
 *   session's entries.
 * @returns undefined if the session does not exist
 * @throws DriverAdapterError the database rejects an entry
 */
export async function addEntries(
  services: Services,
  tx: SqlClient,
  key: SessionKey,
  entries: readonly SessionEntry[],
  after?: number,
): Promise<NotStored | undefined> {
  const session = await find(services, tx, key);
  if (session === undefined) return undefined;
  const stored = after === undefined ? 0 : Math.max(0, Number(session.entriesWritten) - after);
  if (stored >= entries.length) return { droppedEvents: 0, unrecorded: undefined };
  const own = Number(session.sessionRecordMegabytes) || services.settings.maximumRecording;
  const megabytes = Math.min(own, services.settings.maximumRecording);
  const limit = megabytes * 1024 * 1024;
  const rows: Rows = { events: [], chunks: [], assignments: [] };
  let { recordedSize, boundedEvents } = session;
  let droppedEvents = 0;
  let unrecorded: string | undefined;
  if (after !== undefined) rows.assignments.push(sql`"entriesWritten" = ${after + entries.length}`);
  const refusal = !session.sessionRecord
    ? "the namespace does not record sessions"
    : session.over
      ? "the session has ended"
      : undefined;
  const record = ({ seat, stream, text, size, at }: Omit<OutputEntry, "kind">) => {
    const message = JSON.stringify(text);
    const length = Buffer.byteLength(message) + CHUNK_OVERHEAD;
    if (recordedSize + length > limit) {
      return `a session's recording can have at most ${megabytes} MiB`;
    }
    recordedSize += length;
    const sequence = session.records + rows.chunks.length + 1;
    rows.chunks.push(
      sql`(${key.uid}, ${seat}, ${sequence}, ${at}, ${message}, ${stream}, ${BigInt(size.width)},
        ${BigInt(size.height)})`,
    );
    return undefined;
  };
  const addEvent = ({ seat, type, at, data }: Omit<EventEntry, "kind">) => {
    const sequence = session.events + rows.events.length + 1;
    rows.events.push(sql`(${key.uid}, ${sequence}, ${seat}, ${type}, ${at}, ${JSON.stringify(data)})`);
  };
  const addBounded = (event: EventEntry) => {
    boundedEvents += 1;
    if (boundedEvents <= BOUNDED_EVENTS_MAX) addEvent(event);
    else {
      droppedEvents += 1;
      const data = { kept: BOUNDED_EVENTS_MAX, type: event.type };
      if (boundedEvents === BOUNDED_EVENTS_MAX + 1) addEvent({ ...event, type: CAPPED, data });
    }
  };
  const addGap = ({ seat, from, to, entries: lost, bytes, size }: RecordingGap) => {
    const data = { from: from.toISOString(), to: to.toISOString(), entries: lost, bytes };
    addEvent({ seat, type: GAP, at: to, data });
    if (size === undefined) return;
    const text = `\r\n[recording gap: ${bytes.toLocaleString("en")} bytes lost between ${data.from} and ${data.to}]\r\n`;
    unrecorded ??= refusal ?? record({ seat, stream: "stdout", text, size, at: from });
  };
  for (const entry of entries.slice(stored)) {
    if (entry.kind === "output") unrecorded ??= refusal ?? record(entry);
    else if (entry.kind === "gap") addGap(entry);
    else if (entry.kind === "authenticated") {
      const lastSeen = sql`CASE WHEN "closedAt" IS NULL THEN ${services.now()} ELSE "lastSeen" END`;
      rows.assignments.push(sql`"authenticated" = ${true}`, sql`"lastSeen" = ${lastSeen}`);
    } else if (entry.kind === "described") {
      rows.assignments.push(sql`"type" = ${entry.type}`);
      if (entry.term !== undefined) rows.assignments.push(sql`"term" = ${storable(entry.term)}`);
    } else if (KEPT.has(entry.type)) addEvent(entry);
    else addBounded(entry);
  }
  if (rows.events.length > 0) {
    rows.assignments.push(sql`"events" = ${session.events + rows.events.length}`);
  }
  if (boundedEvents > session.boundedEvents) {
    rows.assignments.push(sql`"boundedEvents" = ${boundedEvents}`);
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
    sql`SELECT "Session"."events", "Session"."boundedEvents", "Session"."records", "Session"."recordedSize",
        "Session"."entriesWritten", "Namespace"."sessionRecord", "Namespace"."sessionRecordMegabytes",
        CASE WHEN "Session"."closedAt" <= ${activeSince(services)} THEN 1 ELSE 0 END AS "over"
      FROM "Session" JOIN "Namespace" ON "Namespace"."tenantId" = "Session"."tenantId"
      WHERE ${sql.join([sql`"Session"."uid" = ${uid}`, ...owners], " AND ")}`,
  );
  return session;
}

/**
 * Writes the rows. The row of the session is written first, so that concurrent additions conflict on this row and the
 * transaction is retried. If a different table were written first, concurrent additions would use the same sequence
 * numbers. This would violate a unique index, and such an error is not retried.
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
      sql`INSERT INTO "SessionRecord" ("sessionUid", "seat", "sequence", "time", "message", "stream", "width", "height")
        VALUES ${sql.join(chunks, ", ")}`,
    );
  }
}

/**
 * Converts a string from a client to a string that both databases can store. PostgreSQL rejects NUL and lone
 * surrogates.
 */
const storable = (text: string): string => text.toWellFormed().replaceAll("\0", "\u{fffd}");

/** New entries of a session, in the order in which they are stored. */
export interface SessionEntries {
  readonly uid: string;
  /** Number of entries that the session had before these entries: see {@link addEntries}. */
  readonly after: number;
  readonly entries: readonly SessionEntry[];
}

/**
 * The result of adding entries to a session. `stored`: the database contains the entries. `silenced`: the database
 * contains the entries except the output, and the session's output is no longer recorded. `rejected`: the database
 * rejected the values of the entries, so a retry would fail too. All other results: the addition failed because of an
 * outage or an unknown error, and can be retried.
 */
export type EntriesResult = "stored" | "silenced" | "rejected" | Outage | "unknown";

/**
 * Adds entries to sessions. The sessions share transactions, but each session succeeds or fails separately. Output of a
 * session is no longer recorded in four cases: the session does not exist, the session has ended, its recording has
 * reached the size limit, or recording is turned off.
 * @returns the results in the order of `sessions`
 */
export function addToSessions(
  services: Services,
  sessions: readonly SessionEntries[],
  log: () => FastifyBaseLogger,
): Promise<EntriesResult[]> {
  return Promise.all(
    sessions.map(async ({ uid, after, entries }) => {
      try {
        const added = await inSqlTransaction(services, "sessions", (tx) =>
          addEntries(services, tx, { uid }, entries, after),
        );
        const reason = added === undefined ? "the session no longer exists" : added.unrecorded;
        if (reason === undefined) return "stored";
        log().warn({ session: uid, reason }, "data of a session was not stored");
        return "silenced";
      } catch (error) {
        return failureOf(error, uid, log());
      }
    }),
  );
}

/** Returns the result for an error. Outages are not logged here, because every write fails during an outage. */
function failureOf(error: unknown, uid: string, log: FastifyBaseLogger): EntriesResult {
  const outage = outageOfWork(error);
  if (outage !== undefined) return outage;
  const result = isOfValues(error) ? "rejected" : "unknown";
  log.error({ err: error, session: uid, result }, "cannot store entries of a session");
  return result;
}
