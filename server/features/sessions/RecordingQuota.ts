import type { FastifyBaseLogger } from "fastify";
import { readRows, sql } from "../../db/sql/sql.ts";
import type { Services } from "../../services.ts";
import { type FullNamespace, fullNamespaces } from "./recordingShares.ts";
import { readRecordingSizes } from "./recordingSizes.ts";
import {
  QUOTA_LOCK,
  type RecordedSession,
  RemovalSteps,
  removeRecordings,
  SESSIONS_AT_ONCE,
} from "./removeSessions.ts";

const MEBIBYTE = 1024 * 1024;
/**
 * Minimum time since the last activity of a session whose recording is deleted for a quota, in milliseconds. Sessions
 * send keep-alives, so open sessions keep their recordings.
 */
const MINIMUM_AGE = 60 * 60_000;

/** A session with a recording, whose size is in bytes. */
interface OldRecording extends RecordedSession {
  readonly recordedSize: number;
}

/**
 * The quotas of recordings, for each namespace and in all. At a quota, the service either deletes the oldest recordings,
 * or refuses new sessions in namespaces that record sessions. Open sessions continue, and each records up to the maximum
 * size of a recording. The result of the last measurement decides, so a login waits for no query.
 */
export class RecordingQuota {
  #full: ReadonlySet<string> = new Set();
  /** The namespaces above their share that have no recording to delete, or that refuse sessions. */
  #reported: ReadonlySet<string> = new Set();

  /** Returns true if the service refuses new recorded sessions in a namespace. */
  refuses(tenantId: string): boolean {
    return this.#full.has(tenantId);
  }

  /**
   * Measures the recordings, and deletes the oldest ones if they exceed a quota and the policy is to delete.
   * @param stop ends the deletion after the current statement
   */
  async enforce(services: Services, stop: AbortSignal, log: FastifyBaseLogger): Promise<void> {
    const { recordingsMax, namespaceRecordingsMax, recordingsFull } = services.settings;
    const { metrics } = services;
    const sizes = await readRecordingSizes(services.db);
    metrics.recordings.set(sizes.reduce((sum, { bytes }) => sum + bytes, 0));
    metrics.recordingsMax.set(recordingsMax * MEBIBYTE);
    const quotas = { all: inBytes(recordingsMax), namespace: inBytes(namespaceRecordingsMax) };
    const full = fullNamespaces(sizes, quotas);
    metrics.fullNamespaces.set(full.length);
    const isRefusing = recordingsFull === "refuse";
    const tenants = full.map(({ tenantId }) => tenantId);
    this.#full = new Set(isRefusing ? tenants : []);
    const unsolved = isRefusing ? tenants : await deleteOldest(services, full, stop, log);
    this.#report(unsolved, isRefusing, log);
  }

  /** Logs once that a namespace has reached its quota, and once that it no longer does. */
  #report(tenants: readonly string[], isRefusing: boolean, log: FastifyBaseLogger): void {
    const current = new Set(tenants);
    const reported = this.#reported;
    for (const tenant of tenants.filter((one) => !reported.has(one))) {
      if (isRefusing)
        log.warn({ tenant }, "the recordings of a namespace are full; refusing its new sessions");
      else
        log.warn(
          { tenant },
          "the recordings of a namespace exceed their quota, but all are younger than an hour",
        );
    }
    for (const tenant of [...reported].filter((one) => !current.has(one))) {
      log.info({ tenant }, "the recordings of a namespace are within their quota again");
    }
    this.#reported = current;
  }
}

/** Returns the bytes of a setting in MiB; undefined for 0, which is no limit. */
const inBytes = (mebibytes: number): number | undefined =>
  mebibytes === 0 ? undefined : mebibytes * MEBIBYTE;

/**
 * Deletes the oldest recordings of the namespaces above their share.
 * @returns the namespaces that still exceed their share because no other recording is old enough
 */
async function deleteOldest(
  services: Services,
  full: readonly FullNamespace[],
  stop: AbortSignal,
  log: FastifyBaseLogger,
): Promise<string[]> {
  const steps = new RemovalSteps(services, stop, QUOTA_LOCK);
  const unsolved: string[] = [];
  for (const { tenantId, excess } of full) {
    let remaining = excess;
    let deleted = 0;
    while (remaining > 0) {
      const chosen = await oldestOf(services, tenantId, remaining);
      if (chosen.length === 0) {
        unsolved.push(tenantId);
        break;
      }
      const removed = await removeRecordings(services, steps, chosen, "quota");
      if (removed === undefined) break;
      deleted += removed;
      remaining -= chosen.reduce((sum, { recordedSize }) => sum + recordedSize, 0);
    }
    if (deleted > 0) {
      services.metrics.deletedRecordings.inc({ reason: "quota" }, deleted);
      log.info(
        { tenant: tenantId, recordings: deleted },
        "deleted the oldest recordings of a namespace: quota",
      );
    }
  }
  return unsolved;
}

/** Returns the oldest recordings of a namespace with a total size, or fewer if there are too many. */
async function oldestOf(services: Services, tenantId: string, bytes: number): Promise<OldRecording[]> {
  const end = new Date(services.now().getTime() - MINIMUM_AGE);
  const oldest = await readRows<OldRecording>(
    services.db,
    sql`SELECT "uid", "records", "recordedSize" FROM "Session"
      WHERE "tenantId" = ${tenantId} AND "recorded" = ${true} AND "lastSeen" < ${end}
      ORDER BY "lastSeen" LIMIT ${SESSIONS_AT_ONCE}`,
  );
  let sum = 0;
  return oldest.filter(({ recordedSize }) => {
    const isChosen = sum < bytes;
    sum += recordedSize;
    return isChosen;
  });
}
