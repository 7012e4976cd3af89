import { DAY } from "@gatehouse-access/sdk/times";
import { readRows, sql } from "../../db/sql/sql.ts";
import type { Services } from "../../services.ts";
import {
  deleteRecordings,
  deleteSessions,
  RETENTION_LOCK,
  type RecordedSession,
  RemovalSteps,
  SESSIONS_AT_ONCE,
} from "./removeSessions.ts";

/**
 * Returns two times, one for recordings and one for sessions. A recording or session has expired if the session was
 * last active before the respective time. The time for recordings is undefined if recordings never expire. The time for
 * sessions is undefined if sessions never expire. A recording expires at the latest together with its session.
 */
export function retentionEnds(services: Services): {
  readonly recordings: Date | undefined;
  readonly sessions: Date | undefined;
} {
  const { sessionRetention, recordingRetention } = services.settings;
  const before = (days: number) => new Date(services.now().getTime() - days * DAY);
  const days = [sessionRetention, recordingRetention].filter((limit) => limit > 0);
  return {
    recordings: days.length > 0 ? before(Math.min(...days)) : undefined,
    sessions: sessionRetention > 0 ? before(sessionRetention) : undefined,
  };
}

/**
 * Deletes all expired recordings and sessions. A session that sends keep-alives never expires. The oldest sessions of
 * all namespaces are deleted first. So each session waits only for sessions that expired before it. A namespace can
 * delay the others only if it creates sessions faster than the service deletes them, for the whole duration of the
 * retention. The service deletes sessions at least 40 times as fast as 2,000 devices create them (bench/RETENTION.md).
 * @param stop ends the run after the current statement
 */
export async function trimSessions(services: Services, stop: AbortSignal): Promise<void> {
  const steps = new RemovalSteps(services, stop, RETENTION_LOCK);
  const { recordings, sessions } = retentionEnds(services);
  // Recordings are deleted first, because a session can be deleted only after its recording.
  if (recordings !== undefined) await trimRecordings(services, recordings, steps);
  if (sessions !== undefined) await trimUnrecorded(services, sessions, steps);
}

async function trimRecordings(services: Services, end: Date, steps: RemovalSteps): Promise<void> {
  for (;;) {
    const expired = await readRows<RecordedSession>(
      services.db,
      sql`SELECT "uid", "records" FROM "Session" WHERE "recorded" = ${true} AND "lastSeen" < ${end}
        ORDER BY "lastSeen" LIMIT ${SESSIONS_AT_ONCE}`,
    );
    if (expired.length === 0) return;
    const deleted = await deleteRecordings(steps, expired);
    if (deleted === undefined) return;
    services.metrics.deletedRecordings.inc({ reason: "retention" }, deleted);
  }
}

async function trimUnrecorded(services: Services, end: Date, steps: RemovalSteps): Promise<void> {
  const isExpired = sql`"recorded" = ${false} AND "lastSeen" < ${end}`;
  for (;;) {
    const expired = await readRows<{ readonly uid: string }>(
      services.db,
      sql`SELECT "uid" FROM "Session" WHERE ${isExpired} ORDER BY "lastSeen" LIMIT ${SESSIONS_AT_ONCE}`,
    );
    if (expired.length === 0) return;
    const uids = expired.map(({ uid }) => uid);
    const deleted = await deleteSessions(steps, uids, isExpired);
    if (deleted === undefined) return;
    services.metrics.deletedSessions.inc(deleted);
  }
}
