import { setTimeout as wait } from "node:timers/promises";
import { providerOf, readRows, type Sql, type SqlClient, sql } from "../../db/sql/sql.ts";
import { inSqlTransaction, retryConflicts } from "../../db/sql/transaction.ts";
import type { Services } from "../../services.ts";

/**
 * Maximum number of rows and bytes that one statement deletes. SQLite runs a statement on the event loop, and other
 * queries wait for it. The size of a row is the size of its text in bytes, because SQLite visits each page of a long
 * text to free it. A single row may exceed the maximum. bench/RETENTION.md contains the measured times.
 */
export const SLICE = { rows: 250, bytes: 512 * 1024 };

/** Maximum number of sessions that are removed together. */
export const SESSIONS_AT_ONCE = 50;

/** Minimum pause after a step, in milliseconds, so that other queries can use the database. */
const PAUSE = 5;

/**
 * Maximum time to wait for a connection of the pool, and maximum duration of a step on PostgreSQL, in milliseconds.
 */
const PATIENCE = { maxWait: 20_000, timeout: 20_000 };

/** Keys of the advisory locks for tasks on PostgreSQL. The numbers are arbitrary. */
export const RETENTION_LOCK = 7_201_905_001n;
export const QUOTA_LOCK = 7_201_905_002n;

/**
 * Runs the steps of a task that removes sessions. Each step is short, and is followed by a pause of at least the same
 * duration. So the task uses the database for at most half of the time. The task ends when the service stops. It also
 * ends if a different instance is running a step, because that instance does the work.
 */
export class RemovalSteps {
  readonly #services: Services;
  readonly #stop: AbortSignal;
  readonly #lock: bigint;
  #hasEnded = false;

  /** @param lock key of the advisory lock of the task */
  constructor(services: Services, stop: AbortSignal, lock: bigint) {
    this.#services = services;
    this.#stop = stop;
    this.#lock = lock;
  }

  /** True if the task must end, although work remains. */
  get hasEnded(): boolean {
    return this.#hasEnded || this.#stop.aborted;
  }

  /** Runs a step, and returns its result. Returns undefined if the task must end. */
  async run<T>(step: (db: SqlClient) => Promise<T>): Promise<T | undefined> {
    if (this.hasEnded) return undefined;
    const begun = performance.now();
    const result = await retryConflicts(() => this.#alone(step));
    const elapsed = performance.now() - begun;
    if (result === undefined) {
      this.#hasEnded = true;
      return undefined;
    }
    // If the service stops, the pause ends.
    await wait(Math.max(PAUSE, elapsed), undefined, { signal: this.#stop }).catch(() => {});
    return result.value;
  }

  /**
   * Runs a step under a lock that only one instance can hold at a time. PostgreSQL releases the lock at the end of the
   * transaction, even if the instance crashes. Returns undefined if a different instance holds the lock. SQLite needs
   * no lock, because it has only one instance.
   */
  #alone<T>(step: (db: SqlClient) => Promise<T>): Promise<{ readonly value: T } | undefined> {
    const { db } = this.#services;
    if (providerOf(db) !== "postgres") return step(db).then((value) => ({ value }));
    // The transaction has the isolation level "read committed", so that it causes no conflicts with other transactions.
    return db.$transaction(async (tx) => {
      const [lock] = await readRows<{ locked: boolean }>(
        tx,
        sql`SELECT pg_try_advisory_xact_lock(${this.#lock}) AS "locked"`,
      );
      return lock?.locked ? { value: await step(tx) } : undefined;
    }, PATIENCE);
  }
}

/** A table that contains the parts of sessions: their records or their events. */
interface Parts {
  readonly table: string;
  /** The columns of the primary key that follow the session. */
  readonly key: readonly string[];
  /** The column with the text. The text determines the size of a row. */
  readonly text: string;
}

const RECORDS: Parts = { table: "SessionRecord", key: ["seat", "sequence"], text: "message" };
const EVENTS: Parts = { table: "SessionEvent", key: ["sequence"], text: "data" };

/** The key of a part within its session, and the size of its text in bytes. */
type Part = Readonly<Record<string, number | bigint>> & { readonly size: number | bigint };

/**
 * Deletes parts of sessions, up to the maximum of a {@link SLICE}. Deletes all parts of the first sessions. If a single
 * session exceeds the maximum, deletes the first parts of this session. The database finds the sizes of parts without
 * reading their texts.
 * @returns the sessions that still have parts
 */
async function deleteSlice(
  db: SqlClient,
  { table, key, text }: Parts,
  uids: readonly string[],
): Promise<readonly string[]> {
  const name = sql.column(table);
  const columns = sql.join(key.map(sql.column), ", ");
  let left = SLICE;
  let whole = 0;
  for (const uid of uids) {
    const parts = await readRows<Part>(
      db,
      sql`SELECT ${columns}, OCTET_LENGTH(${sql.column(text)}) AS "size" FROM ${name}
        WHERE "sessionUid" = ${uid} ORDER BY ${columns} LIMIT ${SLICE.rows + 1}`,
    );
    const bytes = parts.reduce((sum, { size }) => sum + Number(size), 0);
    if (parts.length > left.rows || bytes > left.bytes) {
      const last = whole === 0 ? parts[fitting(parts) - 1] : undefined;
      if (last === undefined) break;
      const values = sql.list(key.map((column) => last[column]));
      await db.$executeRaw(
        sql`DELETE FROM ${name} WHERE "sessionUid" = ${uid} AND (${columns}) <= (${values})`,
      );
      return last === parts.at(-1) && parts.length <= SLICE.rows ? uids.slice(1) : uids;
    }
    left = { rows: left.rows - parts.length, bytes: left.bytes - bytes };
    whole += 1;
  }
  if (left.rows < SLICE.rows) {
    await db.$executeRaw(sql`DELETE FROM ${name} WHERE "sessionUid" IN (${sql.list(uids.slice(0, whole))})`);
  }
  return uids.slice(whole);
}

/** Returns how many of the first parts of a session fit into a slice. Returns at least 1. */
function fitting(parts: readonly Part[]): number {
  let bytes = 0;
  const beyond = parts.findIndex(({ size }, index) => {
    bytes += Number(size);
    return index > 0 && (index === SLICE.rows || bytes > SLICE.bytes);
  });
  return beyond === -1 ? parts.length : beyond;
}

/** Deletes all parts of sessions in a table. Returns false if the task must end before all parts are deleted. */
async function deleteParts(steps: RemovalSteps, parts: Parts, uids: readonly string[]): Promise<boolean> {
  let remaining: readonly string[] | undefined = uids;
  while (remaining.length > 0) {
    const before: readonly string[] = remaining;
    remaining = await steps.run((db) => deleteSlice(db, parts, before));
    if (remaining === undefined) return false;
  }
  return true;
}

/**
 * A session with a recording. `records` is the number of chunks that the session had recorded when it was read,
 * including deleted chunks.
 */
export interface RecordedSession {
  readonly uid: string;
  readonly records: number;
}

/**
 * Deletes the recordings of sessions, but not the sessions. Clears the mark `recorded` of the sessions. If a session
 * records output during the deletion, it keeps its mark, so that a later run deletes this output too.
 * @param sessions at most {@link SESSIONS_AT_ONCE}
 * @returns the number of deleted recordings; undefined if the task must end before the deletion is complete
 */
export async function deleteRecordings(
  steps: RemovalSteps,
  sessions: readonly RecordedSession[],
): Promise<number | undefined> {
  const uids = sessions.map(({ uid }) => uid);
  if (!(await deleteParts(steps, RECORDS, uids))) return undefined;
  const unchanged = sessions.map(({ uid, records }) => sql`(${uid}, CAST(${records} AS INTEGER))`);
  return steps.run((db) =>
    db.$executeRaw(
      sql`UPDATE "Session" SET "recorded" = ${false}
        WHERE ("uid", "records") IN (VALUES ${sql.join(unchanged, ", ")}) AND "recorded" = ${true}`,
    ),
  );
}

/** Type of the event that records the deletion of a recording before the end of its retention. */
const REMOVED = "recording-removed";

/**
 * Deletes the recordings of sessions before the end of their retention. Adds an event with the reason to each session.
 * @param sessions at most {@link SESSIONS_AT_ONCE}
 * @returns the number of deleted recordings; undefined if the task must end before the deletion is complete
 */
export async function removeRecordings(
  services: Services,
  steps: RemovalSteps,
  sessions: readonly RecordedSession[],
  reason: string,
): Promise<number | undefined> {
  const uids = sessions.map(({ uid }) => uid);
  if (!(await deleteParts(steps, RECORDS, uids))) return undefined;
  const at = services.now();
  return inSqlTransaction(services, "sessions", async (tx) => {
    let removed = 0;
    for (const { uid, records } of sessions) {
      const changed = await tx.$executeRaw(
        sql`UPDATE "Session" SET "recorded" = ${false}, "events" = "events" + 1
          WHERE "uid" = ${uid} AND "records" = ${records} AND "recorded" = ${true}`,
      );
      if (changed === 0) continue;
      removed += 1;
      await tx.$executeRaw(
        sql`INSERT INTO "SessionEvent" ("sessionUid", "sequence", "seat", "type", "at", "data")
          SELECT "uid", "events", 0, ${REMOVED}, ${at}, ${JSON.stringify({ reason })} FROM "Session" WHERE "uid" = ${uid}`,
      );
    }
    return removed;
  });
}

/**
 * Deletes sessions without recordings, and their events. Audit trail entries about the sessions are kept, because they
 * have a separate retention.
 * @param uids at most {@link SESSIONS_AT_ONCE}
 * @param condition selects the sessions that are still deleted after their events were deleted
 * @returns the number of deleted sessions; undefined if the task must end before the deletion is complete
 */
export async function deleteSessions(
  steps: RemovalSteps,
  uids: readonly string[],
  condition: Sql,
): Promise<number | undefined> {
  if (!(await deleteParts(steps, EVENTS, uids))) return undefined;
  return steps.run((db) =>
    db.$executeRaw(sql`DELETE FROM "Session" WHERE "uid" IN (${sql.list(uids)}) AND ${condition}`),
  );
}
