import type { Services } from "../../services.ts";

const DAY = 24 * 60 * 60_000;

/** Rows in one statement: the others who wait for the database wait for no more than that. */
const RECORDS = 1000;
const SESSIONS = 50;

/** How long things are kept after the last sign of life of their session, in days; 0: for ever. */
export interface SessionRetention {
  readonly sessions: number;
  readonly recordings: number;
}

/** Removes what is older than it is kept for. A session that is kept alive is never old. */
export async function trimSessions(services: Services, retention: SessionRetention): Promise<void> {
  const { sessions, recordings } = retention;
  const limits = [sessions, recordings].filter((days) => days > 0);
  // What is recorded of a session goes with it, and first: it may be more than one statement should remove.
  if (limits.length > 0) await trimRecordings(services, before(services, Math.min(...limits)));
  if (sessions > 0) await trimUnrecorded(services, before(services, sessions));
}

const before = (services: Services, days: number) => new Date(services.now().getTime() - days * DAY);

async function trimRecordings({ db }: Services, end: Date): Promise<void> {
  for (;;) {
    const session = await db.session.findFirst({
      where: { recorded: true, lastSeen: { lt: end } },
      orderBy: { lastSeen: "asc" },
      select: { uid: true },
    });
    if (session === null) return;
    await untilFewer(RECORDS, () =>
      db.sessionRecord.deleteMany({ where: { sessionUid: session.uid }, limit: RECORDS }),
    );
    await db.session.updateMany({ where: { uid: session.uid }, data: { recorded: false } });
  }
}

async function trimUnrecorded({ db }: Services, end: Date): Promise<void> {
  await untilFewer(SESSIONS, () =>
    db.session.deleteMany({ where: { recorded: false, lastSeen: { lt: end } }, limit: SESSIONS }),
  );
}

async function untilFewer(most: number, remove: () => Promise<{ readonly count: number }>): Promise<void> {
  while ((await remove()).count === most);
}
