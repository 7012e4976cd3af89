// Attacks by sessions: recordings, events and lists.
import { addDevices, hostileUid } from "./deviceRows.ts";
import { type Attacker, call, reading, type Seeding, type TenantCase } from "./tenantCase.ts";

/** Default size limit of a recording, in bytes. */
const RECORDING = 64 * 1024 ** 2;
/** Size that the service counts for each chunk of a recording, in addition to its text. */
const CHUNK_OVERHEAD = 128;
const LONGEST_CHUNK = 32 * 1024;
/** Maximum number of events in one response. */
const EVENTS = 1000;
/** Length of the longest command that an SSH packet can contain, in characters. */
const COMMAND = 34_000;
const SESSIONS = 100;
/** Number of channels of each session in the list. A session can have up to 10,000. */
const SEATS = 1000;

const sessionUid = (tenantId: string, index: number): string => hostileUid(tenantId, 1_000_000 + index);

/** Adds sessions of one device. */
async function addSessions(seeding: Seeding, count: number): Promise<void> {
  const { insert, tenantId, now } = seeding;
  await addDevices(seeding, { count: 1, nameOf: () => "device" });
  await insert("Session", count, (index) => ({
    uid: sessionUid(tenantId, index),
    tenantId,
    deviceUid: hostileUid(tenantId, 0),
    username: "root",
    ipAddress: "127.0.0.1",
    type: "exec",
    term: "none",
    startedAt: now,
    lastSeen: now,
    authenticated: true,
    recorded: true,
  }));
}

/** Returns a case whose attack reads a recording of the largest size. */
function playback(title: string, text: string): TenantCase {
  const message = JSON.stringify(text);
  const chunks = Math.floor(RECORDING / (message.length + CHUNK_OVERHEAD));
  return {
    title: `playback of ${chunks.toLocaleString("en")} ${title}`,
    async seed(seeding) {
      const { insert, tenantId, now } = seeding;
      await addSessions(seeding, 1);
      const row = (index: number) => ({
        sessionUid: sessionUid(tenantId, 0),
        seat: 0,
        sequence: index + 1,
        time: now,
        message,
        width: 80,
        height: 24,
      });
      await insert("SessionRecord", chunks, row, message.length > 100 ? 100 : 20_000);
    },
    run: (attacker) => call(attacker, "GET", `/api/sessions/${sessionUid(attacker.tenantId, 0)}/records/0`),
  };
}

/** Records the longest chunk, each of whose characters JSON escapes. */
function record(attacker: Attacker): Promise<number> {
  const uid = sessionUid(attacker.tenantId, recorded % SESSIONS);
  recorded += 1;
  const message = "\u0001".repeat(LONGEST_CHUNK);
  return call(attacker, "POST", `/api/sessions/${uid}/records/0`, {
    uid,
    seat: 0,
    message,
    width: 80,
    height: 24,
  });
}
let recorded = 0;

export const SESSION_CASES = {
  playbackLong: playback("chunks of 32 KiB: the largest recording", "x".repeat(LONGEST_CHUNK)),
  playbackShort: playback("empty chunks: the recording with the most chunks", ""),
  recordings: {
    title: "new chunks of 32 KiB of escaped characters in recordings",
    parallel: 16,
    seed: (seeding) => addSessions(seeding, SESSIONS),
    run: record,
  },
  sessionEvents: {
    title: "pages of 1,000 events with commands of 34,000 characters",
    async seed(seeding) {
      const { insert, tenantId, now } = seeding;
      await addSessions(seeding, 1);
      const data = JSON.stringify({ command: "x".repeat(COMMAND) });
      await insert(
        "SessionEvent",
        EVENTS,
        (index) => ({
          sessionUid: sessionUid(tenantId, 0),
          sequence: index + 1,
          seat: index,
          type: "exec",
          at: now,
          data,
        }),
        100,
      );
    },
    run: (attacker) => call(attacker, "GET", `/api/sessions/${sessionUid(attacker.tenantId, 0)}`),
  },
  sessionPages: reading(
    "pages of 100 sessions with 3 events on each of 1,000 channels",
    ["/api/sessions?per_page=100"],
    {
      async seed(seeding) {
        const { insert, tenantId, now } = seeding;
        await addSessions(seeding, SESSIONS);
        const types = ["exec", "pty-req", "exit-status"] as const;
        await insert("SessionEvent", SESSIONS * SEATS * types.length, (index) => {
          const event = index % (SEATS * types.length);
          return {
            sessionUid: sessionUid(tenantId, Math.floor(index / (SEATS * types.length))),
            sequence: event + 1,
            seat: Math.floor(event / types.length),
            type: types[event % types.length] ?? "",
            at: now,
            data: "{}",
          };
        });
      },
    },
  ),
} as const satisfies Readonly<Record<string, TenantCase>>;
