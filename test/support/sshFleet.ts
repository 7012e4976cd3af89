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

/** The agent command of the installed package. */
const AGENT = fileURLToPath(new URL("../../agent/bin/gatehouse-agent.js", import.meta.url));
/** The user under which agents run if root runs the tests. */
const UNPRIVILEGED = "nobody";

/** The reason why tests with OpenSSH cannot run. Undefined if they can run. */
export const withoutSsh: string | undefined = (() => {
  try {
    execFileSync("ssh", ["-V"], { stdio: "ignore" });
    execFileSync("sftp", ["-h"], { stdio: "ignore" });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "OpenSSH's clients are not on the PATH";
  }
  return undefined;
})();

/**
 * Returns a folder that the agents' user may enter. The folder is created at its first use, and `remove` deletes it.
 */
export function openFolder(): { readonly path: string; remove(): void } {
  let created: string | undefined;
  return {
    get path() {
      if (created === undefined) {
        created = mkdtempSync(join(tmpdir(), "gatehouse-ssh-"));
        chmodSync(created, 0o711);
      }
      return created;
    },
    remove: () => {
      if (created !== undefined) rmSync(created, { recursive: true, force: true });
    },
  };
}

/** A service with an SSH gateway, and the first user's namespace. */
export interface SshService {
  readonly service: TestService;
  /** The first user, and an API client of this user. */
  readonly user: { readonly username: string; readonly password: string };
  readonly client: Client;
  readonly tenant: string;
  readonly namespace: string;
  readonly port: number;
  stop(): Promise<void>;
}

/** Returns a service's SSH port. */
export function sshPortOf(service: TestService): number {
  const line = service.logs().find(({ msg }) => msg === "listening for SSH");
  if (line === undefined) throw new Error("the service does not listen for SSH");
  return Number(line.port);
}

/**
 * Returns the process id of the newest gateway process. Returns undefined if the service has started no gateway
 * process.
 */
export function gatewayPidOf(service: TestService): number | undefined {
  const line = service.logs().findLast(({ gateway, level }) => gateway !== undefined && level < 40);
  return line && Number(line.gateway);
}

/** Disables limits by address, since all logins of a test come from one address. */
export const UNLIMITED = ["--ssh-refusals-per-address", "0", "--ssh-startups-per-address", "0"];

/** Starts a service with an SSH gateway on a free port, and creates the first user. */
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
  /** Parent folder of the agents' data folders, see {@link openFolder}. */
  readonly folder: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly flags?: readonly string[];
}

/** An agent that runs as a separate process. */
export interface TestAgent {
  readonly hostname: string;
  /** The uid of the agent's device. */
  readonly uid: string;
  /** Resolves when the agent has opened this number of tunnels since it started. */
  tunnels(count: number): Promise<void>;
  output(): string;
  stop(): Promise<void>;
  kill(): Promise<void>;
  /** Pauses the process, so that it no longer answers. Its connections stay open. */
  freeze(): void;
}

/**
 * Returns a different MAC address for each name. Otherwise all agents of one machine would have the same MAC address.
 */
const macOf = (name: string): string =>
  `02:${(Buffer.from(name).toString("hex").padEnd(10, "0").slice(-10).match(/../g) ?? []).join(":")}`;

/**
 * Starts an agent, and waits until the agent has a tunnel. The device accepts every login name, and runs sessions as
 * the agent's user.
 */
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

/** Creates an SSH key pair. Returns the path of the private key. */
export function newKey(folder: string, name: string, type = "ed25519", bits?: number): string {
  const path = join(folder, name);
  const size = bits === undefined ? [] : ["-b", String(bits)];
  execFileSync("ssh-keygen", ["-q", "-t", type, ...size, "-N", "", "-C", name, "-f", path]);
  return path;
}

/** Returns the public key in the service's format. */
export const publicHalf = (key: string): string => readFileSync(`${key}.pub`).toString("base64");

/** The fields of a key or rule that applies to every login name and every device. */
export const EVERYTHING = { username: ".*", filter: { hostname: ".*" } };

/**
 * Creates a key that admits every login name to every device.
 * @param key path of the private key
 * @returns the fingerprint of the key
 */
export async function admitKey({ client }: Pick<SshService, "client">, key: string, name = "key") {
  const body = { name, data: publicHalf(key), ...EVERYTHING };
  return (await client.createPublicKey({ body })).fingerprint;
}

/** Accepts a device, and creates a key as {@link admitKey}. */
export async function acceptWithKey(fleet: Pick<SshService, "client">, uid: string, key: string) {
  await fleet.client.acceptDevice({ params: { uid } });
  return admitKey(fleet, key);
}

/** Options of a login with OpenSSH's client. */
export interface Login {
  /** `login@namespace.device` */
  readonly to: string;
  readonly port: number;
  /** Path of the private key. Undefined for a login without a key. */
  readonly key?: string;
  /** Command to run on the device. Default: a shell. */
  readonly command?: string;
  /** Source address of the client. @default 127.0.0.1 */
  readonly from?: string;
  /** Additional arguments of `ssh`. */
  readonly flags?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** Options of every OpenSSH client: no known hosts, no prompts, and no keys other than the given key. */
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
  // The caller's arguments come first, since OpenSSH uses the first value of an option that occurs twice.
  const args = ["-F", "none", ...flags, ...CLIENT, "-b", from, "-p", String(port), ...identity];
  return spawn("ssh", [...args, `${to}@127.0.0.1`, ...(command === undefined ? [] : [command])], {
    env: { PATH: process.env.PATH ?? "", HOME: "/nonexistent", ...env },
    stdio: ["pipe", "pipe", "pipe"],
  });
}

/** The output and exit code of an OpenSSH client. */
interface LoginResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs OpenSSH's client to its end, without a terminal and without a password prompt. */
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

/** Returns true while a process with this id exists. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Runs `work` on all items, with at most `most` concurrent calls. */
export async function someAtATime<T>(items: readonly T[], most: number, work: (item: T) => Promise<void>) {
  const remaining = [...items];
  const worker = async () => {
    for (let item = remaining.shift(); item !== undefined; item = remaining.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: most }, worker));
}
