// Measures the deletion of expired sessions and recordings: `npm run bench:retention`. The number of
// sessions is what 2,000 devices with an hourly Ansible run record in an hour. The process has the exit code 1 if the
// deletion is not much faster than the arrival.
import { rmSync } from "node:fs";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { DAY } from "@gatehouse-access/sdk/times";
import { trimSessions } from "../server/dist/features/sessions/retention.js";
import { makeMetrics } from "../server/dist/metrics.js";
import type { Services } from "../server/dist/services.js";
import { databases, output, readOptions, wholeNumber } from "./commandLine.ts";
import { secondsOf } from "./measuring.ts";
import {
  type DatabaseName,
  fill,
  openForBench,
  seed,
  startDatabase,
  storedTime,
} from "./server/databases.ts";
import { tenantOf, uidOf } from "./server/namespaces.ts";

const NAMESPACE = "thousand";
const DEVICES = 1000;
/** Number of sessions that arrive in an hour. */
const ARRIVALS = 2000;
/** Minimum ratio of the deleted sessions to the arriving sessions in the same time. */
const MINIMUM_RATIO = 20;
/** Number of events of a session. */
const EVENTS = 6;

/** A kind of recordings: the number of chunks of a session, and the characters of a chunk. */
interface Kind {
  readonly name: string;
  chunksOf(session: number): number;
  sizeOf(chunk: number): number;
}

const KINDS: readonly Kind[] = [
  {
    name: "5 to 50 chunks of 0.2, 2 or 16 KB",
    chunksOf: (session) => 5 + ((session * 37) % 46),
    sizeOf: (chunk) => [200, 2000, 16_000][chunk % 3] ?? 0,
  },
  { name: "50 chunks of 16 KB", chunksOf: () => 50, sizeOf: () => 16_000 },
];

const uidOfSession = (index: number) => `${index.toString(16).padStart(8, "0")}${"5e".repeat(28)}`;

/** Adds expired sessions with their events and recordings. */
async function addSessions(url: string, count: number, { chunksOf, sizeOf }: Kind): Promise<void> {
  const old = (index: number) => storedTime(Date.now() - 200 * DAY + index * 1800);
  const indexes = Array.from({ length: count }, (_, index) => index);
  const chunks = indexes.flatMap((session) =>
    Array.from({ length: chunksOf(session) }, (_, chunk) => ({ session, chunk })),
  );
  const common = {
    tenantId: tenantOf(NAMESPACE),
    username: "root",
    ipAddress: "192.0.2.1",
    type: "exec",
    term: "",
  };
  await fill(url, async (insert) => {
    await insert("Session", count, (index) => {
      const sizes = Array.from({ length: chunksOf(index) }, (_, chunk) => sizeOf(chunk) + 130);
      return {
        ...common,
        uid: uidOfSession(index),
        deviceUid: uidOf(NAMESPACE, index % DEVICES),
        startedAt: old(index),
        lastSeen: old(index),
        closedAt: old(index),
        latitude: 0,
        longitude: 0,
        authenticated: true,
        recorded: true,
        viaGateway: true,
        records: sizes.length,
        recordedSize: sizes.reduce((all, size) => all + size, 0),
        events: EVENTS,
        boundedEvents: 0,
      };
    });
    await insert("SessionEvent", count * EVENTS, (index) => ({
      sessionUid: uidOfSession(Math.floor(index / EVENTS)),
      sequence: (index % EVENTS) + 1,
      seat: 0,
      type: "exec",
      at: old(index),
      data: JSON.stringify({ command: "/bin/sh -c '/usr/bin/python3 && sleep 0'" }),
    }));
    const row = (index: number) => {
      const { session = 0, chunk = 0 } = chunks[index] ?? {};
      return {
        sessionUid: uidOfSession(session),
        seat: 0,
        sequence: chunk + 1,
        time: old(session),
        message: JSON.stringify("x".repeat(sizeOf(chunk))),
        stream: "stdout",
        width: 80,
        height: 24,
      };
    };
    await insert("SessionRecord", chunks.length, row, 200);
  });
}

/** The effort to delete sessions. Times are in milliseconds. */
interface Figures {
  /** Deleted sessions per second. */
  readonly rate: number;
  /** Deleted sessions per arriving session. */
  readonly ratio: number;
  /** CPU time of the service for each session. */
  readonly cpu: number;
  /** Longest block of the event loop, as CPU time. So other work of the machine does not count. */
  readonly block: number;
}

/**
 * Measures the CPU time of the thread between the runs of a timer of 1 ms.
 * @returns a function that ends the measurement, and returns the longest time in milliseconds
 */
function watchBlocks(): () => number {
  let longest = 0;
  let last = process.threadCpuUsage();
  const timer = setInterval(() => {
    const { user, system } = process.threadCpuUsage(last);
    last = process.threadCpuUsage();
    longest = Math.max(longest, (user + system) / 1000);
  }, 1);
  return () => {
    clearInterval(timer);
    return longest;
  };
}

async function measure(url: string, count: number): Promise<Figures> {
  const { client, close } = await openForBench(url);
  try {
    const settings = { sessionRetention: 100, recordingRetention: 100 };
    const services = { db: client, settings, now: () => new Date(), metrics: makeMetrics() };
    // The client compiles its statements at their first use.
    await client.session.count();
    // Without this collection, the garbage of the inserted rows would be collected during the measurement.
    setFlagsFromString("--expose-gc");
    runInNewContext("gc")();
    const before = process.cpuUsage();
    const stopWatching = watchBlocks();
    const seconds = await secondsOf(() =>
      trimSessions(services as unknown as Services, new AbortController().signal),
    );
    const block = stopWatching();
    const { user, system } = process.cpuUsage(before);
    const left = (await client.session.count()) + (await client.sessionRecord.count());
    if (left > 0) throw new Error(`${left} rows are left`);
    const rate = count / seconds;
    return {
      rate,
      ratio: rate / (ARRIVALS / 3600),
      cpu: (user + system) / 1000 / count,
      block,
    };
  } finally {
    await close();
  }
}

async function run(database: DatabaseName, kind: Kind, count: number): Promise<Figures> {
  const folder = await mkdtemp(join(tmpdir(), "gatehouse-retention-"));
  const { url, stop } = await startDatabase(database, folder);
  try {
    await seed(url, [NAMESPACE]);
    await addSessions(url, count, kind);
    return await measure(url, count);
  } finally {
    await stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

const options = readOptions("bench:retention", {
  databases,
  sessions: wholeNumber("number of sessions", ARRIVALS),
  output,
});
const rows: string[] = [];
for (const database of options.databases) {
  for (const kind of KINDS) {
    const { rate, ratio, cpu, block } = await run(database, kind, options.sessions);
    rows.push(
      `| ${database} | ${kind.name} | ${rate.toFixed(0)} | ${ratio.toFixed(0)} | ${cpu.toFixed(1)} ms | ${block.toFixed(0)} ms |`,
    );
    console.log(rows.at(-1));
    if (ratio < MINIMUM_RATIO) process.exitCode = 1;
  }
}
if (options.output !== undefined) {
  const day = new Date().toISOString().slice(0, 10);
  const text = [
    "# The deletion of expired sessions",
    "",
    `${day}; Node ${process.version}; ${options.sessions} expired sessions with ${EVENTS} events each.`,
    "",
    `The ratio compares with ${ARRIVALS} sessions per hour: 2,000 devices with an hourly Ansible run.`,
    "",
    "| database | recording of a session | deleted sessions per second | ratio to the arrival | CPU time of the service for a session | longest block of the event loop (CPU time) |",
    "|---|---|---:|---:|---:|---:|",
    ...rows,
    "",
  ].join("\n");
  await writeFile(options.output, text);
}
