import { setTimeout as wait } from "node:timers/promises";
import type { Services } from "../../services.ts";

const DAY = 24 * 60 * 60_000;

/** Maximum number of rows that one statement deletes. Other queries wait for at most one statement. */
const RECORDS = 1000;
const SESSIONS = 50;
/** Pause before each statement, in milliseconds, so that other queries can use the database. */
const PAUSE = 10;
/**
 * Maximum number of statements in one run. The number is limited, because the service must wait for the run when it
 * stops.
 */
const STATEMENTS = 200;

/**
 * Runs a statement after a pause. If the run has reached its maximum number of statements, returns false and does not
 * run the statement.
 */
type Run = (statement: () => Promise<unknown>) => Promise<boolean>;

function limitedRun(): Run {
  let remaining = STATEMENTS;
  return async (statement) => {
    if (remaining === 0) return false;
    remaining -= 1;
    await wait(PAUSE);
    await statement();
    return true;
  };
}

/** Deletes expired sessions and recordings, up to the limit of one run. A session with keep-alives never expires. */
export async function trimSessions(services: Services): Promise<void> {
  const { sessionRetention: sessions, recordingRetention: recordings } = services.settings;
  const limits = [sessions, recordings].filter((days) => days > 0);
  const run = limitedRun();
  // A session and its recording expire together. The recording is deleted first, because it may have more rows than one
  // statement should delete.
  if (limits.length > 0) await trimRecordings(services, before(services, Math.min(...limits)), run);
  if (sessions > 0) await trimUnrecorded(services, before(services, sessions), run);
}

const before = (services: Services, days: number) => new Date(services.now().getTime() - days * DAY);

async function trimRecordings({ db }: Services, end: Date, run: Run): Promise<void> {
  for (;;) {
    const session = await db.session.findFirst({
      where: { recorded: true, lastSeen: { lt: end } },
      orderBy: { lastSeen: "asc" },
      select: { uid: true },
    });
    if (session === null) return;
    const { uid } = session;
    const removed = await untilFewer(RECORDS, run, () =>
      db.sessionRecord.deleteMany({ where: { sessionUid: uid }, limit: RECORDS }),
    );
    if (!removed) return;
    await db.session.updateMany({ where: { uid }, data: { recorded: false } });
  }
}

async function trimUnrecorded({ db }: Services, end: Date, run: Run): Promise<void> {
  await untilFewer(SESSIONS, run, () =>
    db.session.deleteMany({ where: { recorded: false, lastSeen: { lt: end } }, limit: SESSIONS }),
  );
}

/**
 * Repeats a statement until it deletes fewer rows than its limit. Returns false if the run reached its maximum number
 * of statements before that.
 */
async function untilFewer(
  most: number,
  run: Run,
  remove: () => Promise<{ readonly count: number }>,
): Promise<boolean> {
  for (let count = most; count === most; ) {
    const ran = await run(async () => {
      ({ count } = await remove());
    });
    if (!ran) return false;
  }
  return true;
}
