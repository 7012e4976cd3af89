import { setTimeout as wait } from "node:timers/promises";
import { providerOf, readRows, type Sql, type SqlClient, sql } from "../../db/sql/sql.ts";
import { inSqlTransaction, retryConflicts } from "../../db/sql/transaction.ts";
import type { Services } from "../../services.ts";

/**
 * Bounds of the rows that one statement deletes. SQLite runs a statement on the event loop, and other queries wait for
 * it. The bytes are those of the rows' texts, because SQLite visits each page of a long text to free it. A single row
 * may exceed the bytes. bench/RETENTION.md has the measured times.
 */
export const SLICE = { rows: 250, bytes: 512 * 1024 };

/** Maximum number of sessions that are removed together. */
export const SESSIONS_AT_ONCE = 50;

/** Minimum pause after a step, in milliseconds, so that other queries can use the database. */
const PAUSE = 5;

/** Maximum times, in milliseconds, to wait for a connection of the pool and for a step on PostgreSQL. */
const PATIENCE = { maxWait: 20_000, timeout: 20_000 };

/** Keys of the advisory locks of tasks on PostgreSQL. The numbers have no meaning. */
export const RETENTION_LOCK = 7_201_905_001n;
export const QUOTA_LOCK = 7_201_905_002n;

/**
 * The steps of a task that removes sessions. Each step is short, and a pause of at least the same duration follows. So
 * the task takes at most half of the time of the database. The task ends when the service stops, or when another
 * instance runs a step at the same time: then the other instance does the work.
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

  /** Runs a step. Returns undefined, without a result, if the task must end. */
  async run<T>(step: (db: SqlClient) => Promise<T>): Promise<T | undefined> {
    if (this.hasEnded) return undefined;
    const begun = performance.now();
    const result = await retryConflicts(() => this.#alone(step));
    const elapsed = performance.now() - begun;
    if (result === undefined) {
      this.#hasEnded = true;
      return undefined;
    }
    // A stop of the service ends the pause.
    await wait(Math.max(PAUSE, elapsed), undefined, { signal: this.#stop }).catch(() => {});
    return result.value;
  }

  /**
   * Runs a step under a lock that one instance at a time can hold. PostgreSQL releases the lock with the transaction,
   * however the instance ends. Returns undefined if another instance holds the lock. SQLite has only one instance.
   */
  #alone<T>(step: (db: SqlClient) => Promise<T>): Promise<{ readonly value: T } | undefined> {
    const { db } = this.#services;
    if (providerOf(db) !== "postgres") return step(db).then((value) => ({ value }));
    // The transaction has the isolation level "read committed", so that it causes no conflict of other transactions.
    return db.$transaction(async (tx) => {
      const [lock] = await readRows<{ locked: boolean }>(
        tx,
        sql`SELECT pg_try_advisory_xact_lock(${this.#lock}) AS "locked"`,
      );
      return lock?.locked ? { value: await step(tx) } : undefined;
    }, PATIENCE);
  }
}

/** A table with the parts of sessions. */
interface Parts {
  readonly table: string;
  /** The columns of the primary key after the session. */
  readonly key: readonly string[];
  /** The column with the text, which determines the size of a row. */
  readonly text: string;
}

const RECORDS: Parts = { table: "SessionRecord", key: ["seat", "sequence"], text: "message" };
const EVENTS: Parts = { table: "SessionEvent", key: ["sequence"], text: "data" };

/** The key of a part in its session, with the size of its text in bytes. */
type Part = Readonly<Record<string, number | bigint>> & { readonly size: number | bigint };

/**
 * Deletes parts of sessions, up to the bounds of a {@link SLICE}: all parts of the first sessions, or the first parts of
 * a session that exceeds the bounds alone. The database reads the sizes of parts without their texts.
 * @returns the sessions with further parts
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

/** Returns the number of the first parts of a session that fit into a slice. At least one part fits. */
function fitting(parts: readonly Part[]): number {
  let bytes = 0;
  const beyond = parts.findIndex(({ size }, index) => {
    bytes += Number(size);
    return index > 0 && (index === SLICE.rows || bytes > SLICE.bytes);
  });
  return beyond === -1 ? parts.length : beyond;
}

/** Deletes all parts of sessions in a table. Returns false if the task must end before. */
async function deleteParts(steps: RemovalSteps, parts: Parts, uids: readonly string[]): Promise<boolean> {
  let remaining: readonly string[] | undefined = uids;
  while (remaining.length > 0) {
    const before: readonly string[] = remaining;
    remaining = await steps.run((db) => deleteSlice(db, parts, before));
    if (remaining === undefined) return false;
  }
  return true;
}

/** A session with a recording, and the number of chunks that it had ever recorded when it was read. */
export interface RecordedSession {
  readonly uid: string;
  readonly records: number;
}

/**
 * Deletes the recordings of sessions. The sessions remain, without the mark `recorded`. A session that has recorded
 * output meanwhile keeps its mark, so that a later run deletes this output too.
 * @param sessions at most {@link SESSIONS_AT_ONCE}
 * @returns the number of deleted recordings; undefined if the task must end before
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

/** Type of the event of a session whose recording the service deleted before the end of its retention. */
const REMOVED = "recording-removed";

/**
 * Deletes the recordings of sessions before the end of their retention. An event of each session has the reason.
 * @param sessions at most {@link SESSIONS_AT_ONCE}
 * @returns the number of deleted recordings; undefined if the task must end before
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
 * Deletes sessions without recordings, with their events. Entries of the audit trail about the sessions remain: they have
 * a separate retention.
 * @param uids at most {@link SESSIONS_AT_ONCE}
 * @param condition the condition under which a session is still deleted after its events
 * @returns the number of deleted sessions; undefined if the task must end before
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
