import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { callAdmin } from "../../server/admin/adminClient.ts";
import {
  type CommandOptions,
  type CommandResult,
  environmentWithout,
  nodeWith,
  runCommand,
} from "./command.ts";
import { makeDataDir } from "./dataFolder.ts";
import { isNewPort } from "./listening.ts";
import { SHORT_LIVED } from "./nodeFlags.ts";
import { newPostgresql, postgresqlAddress, type TestPostgresql } from "./postgresql/database.ts";
import { callServerCommand, SETTINGS } from "./serverCommand.ts";
import { newSqlite } from "./sqlite.ts";

/** The command of the installed package. */
const command = fileURLToPath(new URL("../../server/bin/gatehouse-server.js", import.meta.url));

export interface ServiceOptions {
  /** Data folder of the service. Default: a new folder, which `stop()` removes. */
  readonly dataDir?: string;
  /** Additional settings, as environment variables. */
  readonly env?: Readonly<Record<string, string>>;
  /** Additional flags of `serve`. */
  readonly flags?: readonly string[];
  /** Maximum file size, see {@link CommandOptions}. */
  readonly fileLimit?: number;
  /** Path of the command. @default the command of the installed package */
  readonly command?: string;
  /** Called for each line of the log. */
  readonly onLog?: (line: LogLine) => void;
}

export interface LogLine {
  readonly level: number;
  readonly msg: string;
  readonly [key: string]: unknown;
}

interface NewUser {
  readonly username: string;
  readonly password: string;
  readonly name?: string;
  readonly email?: string;
  readonly maxNamespaces?: number;
}

/** A running service in a separate process. */
export interface TestService {
  /** Base URL of the service: `http://127.0.0.1:<port>` */
  readonly url: string;
  readonly dataDir: string;
  readonly pid: number;
  /** Runs `gatehouse-server admin …` for this service. The command runs in this process. */
  admin(args: readonly string[], stdin?: string): Promise<CommandResult>;
  /** Creates a user whose e-mail address is confirmed. Throws an error if the service rejects the user. */
  createUser(user: NewUser): Promise<{ id: string }>;
  /** Creates the first user and the user's namespace with `POST /api/setup`. Returns the login of this user. */
  setup(user?: Partial<NewUser>): Promise<{ username: string; password: string }>;
  /** The log lines of the service so far, parsed. */
  logs(): readonly LogLine[];
  /** Everything that the service has written to stdout and stderr so far. */
  output(): string;
  /** Resolves with the exit code when the process has ended. */
  readonly ended: Promise<number | null>;
  /** Ends the process with SIGTERM. Removes the data folder if the caller did not set one. */
  stop(): Promise<number | null>;
  /** Ends the process with SIGKILL and keeps the data folder. */
  kill(): Promise<void>;
}

/** Runs `gatehouse-server` with the given arguments to its end, as a separate process. */
export function runServerCommand(
  args: readonly string[],
  { env = {}, ...options }: CommandOptions = {},
): Promise<CommandResult> {
  return runCommand([command, ...args], { ...options, env: { ...environmentWithout(SETTINGS), ...env } });
}

/** The PostgreSQL database of each data folder. Empty if the tests run on SQLite. */
const databases = new Map<string, Promise<TestPostgresql>>();

/**
 * Returns the PostgreSQL database of a data folder, and creates it at the first call. Returns undefined if the tests
 * run on SQLite.
 */
function databaseOf(dataDir: string): Promise<TestPostgresql> | undefined {
  const address = postgresqlAddress();
  if (address === undefined) return undefined;
  const database = databases.get(dataDir) ?? newPostgresql(address);
  databases.set(dataDir, database);
  return database;
}

/** Starts `gatehouse-server serve` on a free port, see {@link isNewPort}, and waits until it listens. */
export async function startService(options: ServiceOptions = {}): Promise<TestService> {
  const dataDir = options.dataDir ?? (await makeDataDir());
  // If a test sets a database, the test itself creates and drops the database.
  const ours = options.env?.GATEHOUSE_DATABASE_URL === undefined;
  const database = ours ? await databaseOf(dataDir) : undefined;
  // Adds no database to a folder that the test provides, since the test may check the service's changes in this folder.
  if (ours && !database && options.dataDir === undefined) await newSqlite(join(dataDir, "gatehouse.db"));
  const env: Record<string, string> = {
    ...(database && { GATEHOUSE_DATABASE_URL: database.url }),
    ...options.env,
  };
  let running = await serve(dataDir, options, env);
  // After SIGTERM, a service with a lame-duck time would serve for this time.
  const signal = env.GATEHOUSE_LAME_DUCK === undefined ? "SIGTERM" : "SIGKILL";
  while (!isNewPort(Number(new URL(running.url).port))) {
    await end(running, signal);
    running = await serve(dataDir, options, env);
  }
  const { url, child, ended, logs, lines } = running;

  const admin = (more: readonly string[], stdin = "") =>
    callServerCommand(["admin", ...more, "--data-dir", dataDir], { stdin });

  return {
    url,
    dataDir,
    pid: child.pid ?? 0,
    admin,
    createUser: (user) => createUser(dataDir, user),
    setup: (user) => setup(url, dataDir, user),
    logs: () => logs,
    output: () => lines.join("\n"),
    ended,
    async stop() {
      const code = await end(running, "SIGTERM");
      if (options.dataDir === undefined) {
        await rm(dataDir, { recursive: true, force: true });
        await database?.drop();
      }
      return code;
    },
    async kill() {
      await end(running, "SIGKILL");
    },
  };
}

/** Starts a service that stops when the calling test ends. */
export async function testService(options: ServiceOptions = {}): Promise<TestService> {
  const service = await startService(options);
  onTestFinished(async () => void (await service.stop()));
  return service;
}

/** A serving process and its output. */
interface Serving {
  readonly url: string;
  readonly child: ChildProcess;
  readonly ended: Promise<number | null>;
  readonly lines: readonly string[];
  readonly logs: readonly LogLine[];
}

/** Starts the process on any free port, and waits until it listens. */
async function serve(
  dataDir: string,
  options: ServiceOptions,
  env: Readonly<Record<string, string>>,
): Promise<Serving> {
  const args = ["serve", "--data-dir", dataDir, "--port", "0", ...(options.flags ?? [])];
  const child = spawn(...nodeWith([...SHORT_LIVED, options.command ?? command, ...args], options), {
    env: { ...environmentWithout(SETTINGS), ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  // At the event "close", all output has been read. At the event "exit", output may be missing.
  const ended = once(child, "close").then(([code]: (number | null)[]) => code ?? null);
  const lines: string[] = [];
  const logs: LogLine[] = [];
  const url = await new Promise<string>((resolve, reject) => {
    const collect = (line: string) => {
      lines.push(line);
      const parsed = parseLog(line);
      if (parsed === undefined) return;
      logs.push(parsed);
      options.onLog?.(parsed);
      if (parsed.msg === "listening") resolve(String(parsed.address));
    };
    for (const stream of [child.stdout, child.stderr]) createInterface({ input: stream }).on("line", collect);
    child.once("error", reject);
    child.once("close", (code) => reject(new Error(`serve ended with ${code}:\n${lines.join("\n")}`)));
  });
  return { url, child, ended, lines, logs };
}

async function end({ child, ended }: Serving, signal: NodeJS.Signals): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) child.kill(signal);
  return ended;
}

function parseLog(line: string): LogLine | undefined {
  // A killed process can leave an incomplete line.
  return line.startsWith("{") && line.endsWith("}") ? (JSON.parse(line) as LogLine) : undefined;
}

// Creates users through the administration socket, like the admin command. A process for each user would take longer
// than most tests.
function createUser(dataDir: string, user: NewUser): Promise<{ id: string }> {
  const { username, password, name = username, email = `${username}@example.com`, maxNamespaces = -1 } = user;
  return callAdmin(dataDir, "POST", "/users", { username, password, name, email, maxNamespaces });
}

async function setup(
  url: string,
  dataDir: string,
  user: Partial<NewUser> = {},
): Promise<{ username: string; password: string }> {
  const { username = "admin", password = "correct-horse", name = "Administrator" } = user;
  const { email = `${username}@example.com` } = user;
  const { sign } = await callAdmin<{ sign: string }>(dataDir, "GET", "/setup-link");
  const response = await fetch(`${url}/api/setup?sign=${sign}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ name, email, username, password }),
  });
  if (!response.ok) throw new Error(`setup answered ${response.status}: ${await response.text()}`);
  return { username, password };
}

/** Names of the files that remain in a data folder after its service has ended. */
export const KEPT_FILES = postgresqlAddress() === undefined ? ["gatehouse.db", "secret"] : ["secret"];
