import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { boundedStart } from "../../server/dist/process/boundMemory.js";
import { environmentWithout } from "../../test/support/command.ts";

const COUNTER = new URL("./countStatements.ts", import.meta.url).href;

export interface ProcessOptions {
  /** File that takes what the process writes, as a journal would; no other process reads it meanwhile. */
  readonly log: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Count SQL statements; it slows the process, so measured runs go without it. */
  readonly counting?: boolean;
}

/** A server under load, as a process of its own. */
export interface ServerProcess {
  readonly url: string;
  readonly pid: number;
  /** SQL statements since the last call; only of a process that counts. */
  statements(): Promise<number>;
  /** Ends the process by SIGTERM. */
  stop(): Promise<void>;
}

/**
 * Starts a server and waits until it logs the line `listening` with its address.
 * @throws Error with the log, when the process ends before
 */
export async function startProcess(
  args: readonly string[],
  { log, env = {}, counting = false }: ProcessOptions,
): Promise<ServerProcess> {
  const output = openSync(log, "w");
  const preload = counting ? ["--import", COUNTER] : [];
  const child = spawn(process.execPath, [...preload, ...args], {
    env: { ...environmentWithout("GATEHOUSE_"), ...env },
    // With a channel to its parent the service does not bound its memory.
    stdio: ["ignore", output, output, ...(counting ? (["ipc"] as const) : [])],
  });
  closeSync(output);
  const ended = once(child, "exit");
  const url = await addressIn(log, child);
  return {
    url,
    pid: child.pid ?? 0,
    async statements() {
      const answer = once(child, "message");
      child.send("statements");
      return Number((await answer)[0]);
    },
    async stop() {
      if (child.exitCode === null) child.kill("SIGTERM");
      await ended;
    },
  };
}

async function addressIn(log: string, child: ChildProcess): Promise<string> {
  for (;;) {
    const text = readFileSync(log, "utf8");
    for (const line of text.split("\n")) {
      if (!line.startsWith("{") || !line.endsWith("}")) continue;
      const { msg, address } = JSON.parse(line) as { msg?: string; address?: string };
      if (msg === "listening" && address) return address;
    }
    if (child.exitCode !== null) throw new Error(`The server ended with ${child.exitCode}:\n${text}`);
    await sleep(50);
  }
}

/** The service, by its own command. */
export const SERVICE_COMMAND = fileURLToPath(
  new URL("../../server/bin/gatehouse-server.js", import.meta.url),
);
/** The server that sets the floor, with the flags of Node that the service takes for itself. */
export const FLOOR_COMMAND = [
  ...boundedStart([], {}).flags,
  fileURLToPath(new URL("./floor.ts", import.meta.url)),
];

/** Megabytes that a process holds now. Linux only. */
export function memoryOf(pid: number): number {
  const [, kibibytes] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Math.round((Number(kibibytes) * 1024) / 1e6);
}

/** Ticks in a second of what Linux says of a process's time, on every architecture that Node runs on. */
const TICKS = 100;

/** Milliseconds of a core that a process has used so far. Linux only. */
export function coreTimeOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // After the program's name in brackets, the state is the third field of the file; these are the 14th and 15th.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS;
}
