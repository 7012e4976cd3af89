import type { TestApp } from "../http/testApp.ts";

/** A session that a test adds to the database. */
export interface GivenSession {
  /** @default the uid of the session's place in the list, see {@link uidOfSession} */
  readonly uid?: string;
  /** The chunks of the session's recording. */
  readonly chunks?: readonly string[];
  /** Number of the session's events. */
  readonly events?: number;
}

/** Returns the uid of the n-th session in a list of {@link addSessions}. */
export const uidOfSession = (n: number): string => n.toString(16).padStart(64, "0");

/** Number of rows that one statement inserts. */
const BATCH = 500;

async function inBatches<Row>(
  rows: readonly Row[],
  insert: (batch: Row[]) => Promise<unknown>,
): Promise<void> {
  for (let start = 0; start < rows.length; start += BATCH) await insert(rows.slice(start, start + BATCH));
}

/** Adds sessions of a device that were last active now, with the counters that the service would have written. */
export async function addSessions(
  { services }: Pick<TestApp, "services">,
  of: { readonly tenantId: string; readonly deviceUid: string },
  sessions: readonly GivenSession[],
): Promise<void> {
  const { db } = services;
  const at = services.now();
  const common = { ...of, username: "root", ipAddress: "192.0.2.1", type: "exec", term: "none" };
  const given = sessions.map(({ uid, chunks = [], events = 0 }, index) => ({
    uid: uid ?? uidOfSession(index),
    messages: chunks.map((text) => JSON.stringify(text)),
    events,
  }));
  const rows = given.map(({ uid, messages, events }) => ({
    ...common,
    uid,
    startedAt: at,
    lastSeen: at,
    recorded: messages.length > 0,
    records: messages.length,
    recordedSize: messages.reduce((size, message) => size + message.length + 128, 0),
    events,
  }));
  const records = given.flatMap(({ uid, messages }) =>
    messages.map((message, index) => ({
      sessionUid: uid,
      seat: 0,
      sequence: index + 1,
      time: at,
      message,
      width: 80n,
      height: 24n,
    })),
  );
  const events = given.flatMap(({ uid, events: count }) =>
    Array.from({ length: count }, (_, index) => ({
      sessionUid: uid,
      sequence: index + 1,
      seat: 0,
      type: "exec",
      at,
      data: "{}",
    })),
  );
  await inBatches(rows, (data) => db.session.createMany({ data }));
  await inBatches(records, (data) => db.sessionRecord.createMany({ data }));
  await inBatches(events, (data) => db.sessionEvent.createMany({ data }));
}
