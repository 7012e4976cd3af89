import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { environmentWithout } from "../test/support/command.ts";

const COUNTER = new URL("./server/countStatements.ts", import.meta.url).href;
const SERVICE = fileURLToPath(new URL("../server/bin/gatehouse-server.js", import.meta.url));

/** A server under load, in a separate process. */
export interface ServerProcess {
  readonly url: string;
  readonly pid: number;
  /**
   * Returns the number of SQL statements since the last call. Only a process that counts statements supports this
   * method.
   */
  statements(): Promise<number>;
  /** Ends the process with SIGTERM. */
  stop(): Promise<void>;
}

interface ProcessOptions {
  /**
   * File for the output of the process. A pipe would cost more than a file, since another process would have to read
   * the pipe during the run.
   */
  readonly log: string;
  readonly env?: Readonly<Record<string, string>>;
  /**
   * True to count the server's SQL statements. Counting slows the server, so the benchmark measures times in a server
   * that does not count.
   */
  readonly counting?: boolean;
}

/** Starts the service with its data in a folder, on a free port. */
export const startService = (folder: string, options: ProcessOptions): Promise<ServerProcess> =>
  startServer([SERVICE, "serve", "--data-dir", folder, "--port", "0"], options);

/**
 * Starts a server and waits until it logs the line `listening` with its address.
 * @param args arguments of Node.js
 * @throws Error the process ended before it logged this line; the message contains the log
 */
export async function startServer(
  args: readonly string[],
  { log, env = {}, counting = false }: ProcessOptions,
): Promise<ServerProcess> {
  const output = openSync(log, "w");
  const child = spawn(process.execPath, [...(counting ? ["--import", COUNTER] : []), ...args], {
    env: { ...environmentWithout("GATEHOUSE_"), ...env },
    // A counting service has a message channel to this process. With such a channel, the service does not limit its
    // memory.
    stdio: ["ignore", output, output, ...(counting ? (["ipc"] as const) : [])],
  });
  closeSync(output);
  const ended = once(child, "exit");
  let url: string | undefined;
  while (url === undefined) {
    await sleep(50);
    const text = readFileSync(log, "utf8");
    [, url] = /^\{(?=.*"msg":"listening").*"address":"([^"]+)".*\}$/m.exec(text) ?? [];
    if (child.exitCode !== null) throw new Error(`The server ended with ${child.exitCode}:\n${text}`);
  }
  return {
    url,
    pid: child.pid ?? 0,
    async statements() {
      const response = once(child, "message");
      child.send("statements");
      return Number((await response)[0]);
    },
    async stop() {
      if (child.exitCode === null) child.kill("SIGTERM");
      await ended;
    },
  };
}
