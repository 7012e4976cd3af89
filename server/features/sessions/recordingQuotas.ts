import { HOUR } from "@gatehouse-access/sdk/times";
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

const MIB = 1024 * 1024;
/**
 * Time, in milliseconds, for which a session must have been inactive before the service can delete its recording for a
 * quota. Open sessions send keep-alives, so they keep their recordings.
 */
const MINIMUM_AGE = HOUR;

/** A session with a recording. The size is in bytes. */
interface OldRecording extends RecordedSession {
  readonly recordedSize: number;
}

/** Measures the recordings, and returns the namespaces that have reached their share of the quotas. */
export async function measureRecordings(services: Services): Promise<readonly FullNamespace[]> {
  const { recordingsMax, namespaceRecordingsMax, recordingsFull } = services.settings;
  const { metrics, fullRecordings } = services;
  const sizes = await readRecordingSizes(services.db);
  const total = sizes.reduce((sum, { bytes }) => sum + bytes, 0);
  metrics.recordings.set(total);
  metrics.recordingsMax.set(recordingsMax * MIB);
  const quotas = { all: inBytes(recordingsMax), namespace: inBytes(namespaceRecordingsMax) };
  const full = fullNamespaces(sizes, quotas);
  metrics.fullNamespaces.set(full.length);
  if (recordingsFull === "refuse") {
    // Without this limit, the namespaces could together use a multiple of the total quota. If they grow one after
    // another, each can grow up to its share.
    const isTwice = quotas.all !== undefined && total >= 2 * quotas.all;
    fullRecordings.refuse(
      full.map(({ tenantId }) => tenantId),
      isTwice,
    );
  } else fullRecordings.refuse([], false);
  return full;
}

/**
 * Enforces the quotas of recordings, for each namespace and in total. When a quota is reached, the service deletes the
 * oldest recordings, or refuses new sessions in namespaces that record sessions. A setting selects one of these two
 * actions. Open sessions continue, and each of them records up to the maximum size of a recording.
 * @param stop ends the deletion after the current statement
 */
export async function enforceQuotas(
  services: Services,
  stop: AbortSignal,
  log: FastifyBaseLogger,
): Promise<void> {
  const full = await measureRecordings(services);
  const unsolved =
    services.settings.recordingsFull === "refuse"
      ? full.map(({ tenantId }) => tenantId)
      : await deleteOldest(services, full, stop, log);
  if (unsolved !== undefined) services.fullRecordings.report(unsolved, log);
}

/** Converts a setting in MiB to bytes. Returns undefined for 0, which is no limit. */
const inBytes = (mebibytes: number): number | undefined => (mebibytes === 0 ? undefined : mebibytes * MIB);

/**
 * Deletes the oldest recordings of the namespaces that exceed their share.
 * @returns the namespaces that still exceed their share, because none of their other recordings is old enough;
 *   undefined if the service is stopping, or a different instance is deleting
 */
async function deleteOldest(
  services: Services,
  full: readonly FullNamespace[],
  stop: AbortSignal,
  log: FastifyBaseLogger,
): Promise<string[] | undefined> {
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
    if (steps.hasEnded) return undefined;
  }
  return unsolved;
}

/**
 * Returns the oldest recordings of a namespace that together have a given size. The total size may be smaller, because
 * the number of recordings and their minimum age are limited.
 */
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
