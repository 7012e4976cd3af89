import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { chmodSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { type Client, createClient, passwordCredential } from "@gatehouse-access/sdk";
import { environmentWithout } from "./command.ts";
import { isRoot } from "./nobody.ts";
import { type ServiceOptions, startService, type TestService } from "./service.ts";

/** The command of the agent, as an installed package has it. */
const AGENT = fileURLToPath(new URL("../../agent/bin/gatehouse-agent.js", import.meta.url));
/** The user that agents become, where the tests are run by root. */
const UNPRIVILEGED = "nobody";

/** Why tests with OpenSSH cannot run; undefined where they can. */
export const withoutSsh: string | undefined = (() => {
  try {
    execFileSync("ssh", ["-V"], { stdio: "ignore" });
    execFileSync("sftp", ["-h"], { stdio: "ignore" });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "OpenSSH's clients are not on the PATH";
  }
  return undefined;
})();

/** A folder that the agents' user may pass through; made when it is first needed, and removed by `remove`. */
export function openFolder(): { readonly path: string; remove(): void } {
  let made: string | undefined;
  return {
    get path() {
      if (made === undefined) {
        made = mkdtempSync(join(tmpdir(), "gatehouse-ssh-"));
        chmodSync(made, 0o711);
      }
      return made;
    },
    remove: () => {
      if (made !== undefined) rmSync(made, { recursive: true, force: true });
    },
  };
}

/** A service with an SSH entry, and the namespace of its first user. */
export interface SshService {
  readonly service: TestService;
  /** The first user, and its client. */
  readonly user: { readonly username: string; readonly password: string };
  readonly client: Client;
  readonly tenant: string;
  readonly namespace: string;
  readonly port: number;
  stop(): Promise<void>;
}

/** The port at which a service listens for SSH. */
export function sshPortOf(service: TestService): number {
  const line = service.logs().find(({ msg }) => msg === "listening for SSH");
  if (line === undefined) throw new Error("the service does not listen for SSH");
  return Number(line.port);
}

/** The id of the gateway process that a service started last; undefined if it has started none. */
export function gatewayPidOf(service: TestService): number | undefined {
  const line = service.logs().findLast(({ gateway, level }) => gateway !== undefined && level < 40);
  return line && Number(line.gateway);
}

/** Limits by address are off: all logins of a test come from one. */
export const UNLIMITED = ["--ssh-refusals-per-address", "0", "--ssh-startups-per-address", "0"];

/** Starts a service with an SSH entry on a free port, and makes its first user. */
export async function startSshService(options: ServiceOptions = {}): Promise<SshService> {
  const service = await startService({
    ...options,
    flags: ["--ssh-port", "0", ...UNLIMITED, ...(options.flags ?? [])],
  });
  const user = await service.setup();
  const client = createClient({ url: service.url, credential: passwordCredential(user) });
  const [namespace] = await client.getNamespaces({});
  if (namespace === undefined) throw new Error("the first user has no namespace");
  return {
    service,
    user,
    client,
    tenant: namespace.tenantId,
    namespace: namespace.name,
    port: sshPortOf(service),
    stop: async () => {
      await client.close();
      await service.stop();
    },
  };
}

export interface AgentOptions {
  readonly url: string;
  readonly tenant: string;
  /** Name of the device. */
  readonly hostname: string;
  /** Folder that holds the data of agents; see {@link openFolder}. */
  readonly folder: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly flags?: readonly string[];
}

/** An agent that runs as a process of its own. */
export interface TestAgent {
  readonly hostname: string;
  /** The uid of its device. */
  readonly uid: string;
  /** Resolves once it has opened as many tunnels since its start. */
  tunnels(count: number): Promise<void>;
  output(): string;
  stop(): Promise<void>;
  kill(): Promise<void>;
  /** Holds it up, so that it does not answer any more; its connections stay. */
  freeze(): void;
}

/** A MAC for each name: the agents of a machine would have one and the same. */
const macOf = (name: string): string =>
  `02:${(Buffer.from(name).toString("hex").padEnd(10, "0").slice(-10).match(/../g) ?? []).join(":")}`;

/** Starts an agent, and waits until it has a tunnel. Every login name gets in, as the agent's user. */
export async function startAgent(options: AgentOptions): Promise<TestAgent> {
  const { url, tenant, hostname, folder, env = {}, flags = [] } = options;
  const dataDir = join(folder, hostname);
  const user = isRoot ? ["--user", UNPRIVILEGED] : [];
  const named = ["--url", url, "--tenant", tenant, "--hostname", hostname, "--mac", macOf(hostname)];
  const child = spawn(
    process.execPath,
    [AGENT, "run", ...named, "--data-dir", dataDir, "--logins", "*", "--shell", "/bin/sh", ...user, ...flags],
    { env: { ...environmentWithout("GATEHOUSE_"), ...env }, stdio: ["ignore", "pipe", "pipe"] },
  );
  const lines: string[] = [];
  const written = new EventEmitter();
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on("line", (line) => {
      lines.push(line);
      written.emit("line");
    });
  }
  child.once("exit", () => written.emit("line"));
  const tunnels = async (count: number) => {
    while (lines.filter((line) => line.includes('"tunnel open"')).length < count) {
      if (child.exitCode !== null) throw new Error(`the agent of ${hostname} ended:\n${lines.join("\n")}`);
      await once(written, "line");
    }
  };
  await tunnels(1);
  const enrolled = lines.find((line) => line.includes('"enrolled"')) ?? "{}";
  const { uid } = JSON.parse(enrolled) as { readonly uid: string };
  return {
    hostname,
    uid,
    tunnels,
    output: () => lines.join("\n"),
    stop: () => ended(child, "SIGTERM"),
    kill: () => ended(child, "SIGKILL"),
    freeze: () => void child.kill("SIGSTOP"),
  };
}

async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, "exit");
  child.kill(signal);
  await exit;
}

/** Makes a key pair; the path of its private half. */
export function newKey(folder: string, name: string, type = "ed25519", bits?: number): string {
  const path = join(folder, name);
  const size = bits === undefined ? [] : ["-b", String(bits)];
  execFileSync("ssh-keygen", ["-q", "-t", type, ...size, "-N", "", "-C", name, "-f", path]);
  return path;
}

/** The public half of a key, as the service takes it. */
export const publicHalf = (key: string): string => readFileSync(`${key}.pub`).toString("base64");

/**
 * Accepts a device, and adds a key that opens every device to every login name.
 * @param key path of its private half
 * @returns the key's fingerprint
 */
export async function acceptWithKey({ client }: SshService, uid: string, key: string): Promise<string> {
  await client.acceptDevice({ params: { uid } });
  const everything = { username: ".*", filter: { hostname: ".*" } };
  const body = { name: "key", data: publicHalf(key), ...everything };
  return (await client.createPublicKey({ body })).fingerprint;
}

/** An SSH client's login. */
export interface Login {
  /** `login@namespace.device` */
  readonly to: string;
  readonly port: number;
  /** Path of the private key; undefined: none. */
  readonly key?: string;
  /** What to run; left out: a shell. */
  readonly command?: string;
  /** Address that the client comes from. @default 127.0.0.1 */
  readonly from?: string;
  /** More arguments of `ssh`. */
  readonly flags?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** Options of every client: it knows no host, asks nobody, and offers no other key. */
export const CLIENT = [
  ["StrictHostKeyChecking", "no"],
  ["UserKnownHostsFile", "/dev/null"],
  ["GlobalKnownHostsFile", "/dev/null"],
  ["IdentitiesOnly", "yes"],
  ["IdentityAgent", "none"],
  ["LogLevel", "ERROR"],
  ["ConnectTimeout", "30"],
].flatMap(([name, value]) => ["-o", `${name}=${value}`]);

/** Starts OpenSSH's client. */
export function spawnSsh({ to, port, key, command, from = "127.0.0.1", flags = [], env = {} }: Login) {
  const identity = key === undefined ? [] : ["-i", key];
  // Of an option that is given twice, OpenSSH takes the first.
  const args = ["-F", "none", ...flags, ...CLIENT, "-b", from, "-p", String(port), ...identity];
  return spawn("ssh", [...args, `${to}@127.0.0.1`, ...(command === undefined ? [] : [command])], {
    env: { PATH: process.env.PATH ?? "", HOME: "/nonexistent", ...env },
    stdio: ["pipe", "pipe", "pipe"],
  });
}

/** What came of a client's login. */
export interface LoginResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs OpenSSH's client to its end, without a terminal, and asks for no password. */
export async function ssh(login: Login, stdin = ""): Promise<LoginResult> {
  const child = spawnSsh({ ...login, flags: ["-o", "BatchMode=yes", ...(login.flags ?? [])] });
  child.stdin.on("error", () => {});
  child.stdin.end(stdin);
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "close") as Promise<[number | null]>,
  ]);
  return { code, stdout, stderr };
}

/**
 * Runs OpenSSH's `scp` to its end.
 * @param flags such as `-O`, for the older protocol
 * @returns the exit code
 */
export async function scp(
  { port, key }: { readonly port: number; readonly key: string },
  from: string,
  into: string,
  flags: readonly string[] = [],
): Promise<number | null> {
  const args = [...flags, "-F", "none", "-P", String(port), "-i", key, ...CLIENT, from, into];
  const [code] = await once(spawn("scp", args, { stdio: "ignore" }), "close");
  return code;
}

/** True while there is a process with the id. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Runs work on all items, some at a time. */
export async function someAtATime<T>(items: readonly T[], most: number, work: (item: T) => Promise<void>) {
  const left = [...items];
  const worker = async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: most }, worker));
}
