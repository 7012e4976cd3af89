// Starts the bundled service for the demo and makes what a fleet has before its policy is code: a first user,
// more users, and devices that enrolled themselves.
import { execFile, spawn } from "node:child_process";
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type Client, createClient } from "@gatehouse-access/sdk";

const COMMAND = fileURLToPath(new URL("../../server/bin/gatehouse-server.js", import.meta.url));

export interface Service {
  readonly url: string;
  /** Port of SSH to devices. */
  readonly sshPort: string;
  readonly pid: number;
  readonly logFile: string;
  admin(...args: string[]): Promise<string>;
  adminWithPassword(password: string, ...args: string[]): Promise<string>;
  /** Ends the service and waits until it is gone. */
  stop(): Promise<void>;
  /** Lets the service go on after the demo. */
  release(): void;
}

/**
 * Runs `gatehouse-server serve` on a free loopback port, with its data in `folder`.
 * @throws Error with the service's last lines when it does not come up
 */
export async function startService(folder: string): Promise<Service> {
  const dataFolder = join(folder, "data");
  const logFile = join(folder, "service.log");
  const env = { ...process.env, GATEHOUSE_DATA_DIR: dataFolder, GATEHOUSE_LOG_LEVEL: "info" };
  const ports = ["--host", "127.0.0.1", "--port", "0", "--ssh-host", "127.0.0.1", "--ssh-port", "0"];
  const child = spawn(process.execPath, [COMMAND, "serve", ...ports], {
    env,
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const log = createWriteStream(logFile);
  child.stdout.pipe(log);
  child.stderr.pipe(log);
  const { url, sshPort } = await firstAddresses(child);
  const run = promisify(execFile);
  const admin = async (...args: string[]) =>
    (await run(process.execPath, [COMMAND, "admin", ...args], { env })).stdout.trim();
  return {
    url,
    sshPort,
    pid: child.pid ?? 0,
    logFile,
    admin,
    async adminWithPassword(password, ...args) {
      const running = run(process.execPath, [COMMAND, "admin", ...args, "--password-stdin"], { env });
      running.child.stdin?.end(`${password}\n`);
      return (await running).stdout.trim();
    },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGTERM");
      await once(child, "exit");
    },
    release() {
      child.stdout.unpipe();
      child.stdout.destroy();
      child.stderr.destroy();
      child.unref();
    },
  };
}

type Addresses = Pick<Service, "url" | "sshPort">;

async function firstAddresses(child: ReturnType<typeof spawn>): Promise<Addresses> {
  const lines: string[] = [];
  const { stdout, stderr } = child;
  if (!stdout || !stderr) throw new Error("the service has no output to read its address from");
  stderr.on("data", (chunk) => lines.push(String(chunk)));
  let sshPort = "";
  for await (const line of createInterface({ input: stdout })) {
    lines.push(line);
    const { msg, address, port } = entryIn(line);
    if (msg === "listening for SSH") sshPort = String(port);
    if (msg === "listening" && address) return { url: address, sshPort };
  }
  throw new Error(`the service did not start:\n${lines.slice(-20).join("\n")}`);
}

function entryIn(line: string): { readonly msg?: string; readonly address?: string; readonly port?: number } {
  return line.startsWith("{") ? JSON.parse(line) : {};
}

export interface Login {
  readonly username: string;
  readonly password: string;
}

/** Does the first-user set-up with the sign that only the service's operator can get. */
export async function setUp(service: Service, username: string): Promise<Login> {
  const password = newPassword();
  const sign = await service.admin("setup-link", "--sign-only");
  const anonymous = createClient({ url: service.url });
  await anonymous.setup({
    query: { sign },
    body: { name: "Ana Reis", email: `${username}@example.org`, username, password },
  });
  await anonymous.close();
  return { username, password };
}

/** Makes a user, without a namespace. */
export async function createUser(service: Service, username: string, name: string): Promise<Login> {
  const email = `${username}@example.org`;
  const password = newPassword();
  await service.adminWithPassword(
    password,
    ...["user", "create", "--username", username, "--email", email, "--name", name],
  );
  return { username, password };
}

const newPassword = () => randomBytes(12).toString("base64url");

/** The MAC of a device of the fleet. */
export const macOf = (index: number): string => `02:00:00:00:00:${index.toString(16).padStart(2, "0")}`;

/** Enrols a device as its agent does, and accepts it. */
export async function enrol(client: Client, tenant: string, hostname: string, index: number): Promise<void> {
  const { publicKey } = generateKeyPairSync("rsa", {
    modulusLength: 1024,
    publicKeyEncoding: { type: "pkcs1", format: "pem" },
    privateKeyEncoding: { type: "pkcs1", format: "pem" },
  });
  const mac = macOf(index);
  const { uid } = await client.authDevice({
    body: {
      info: {
        id: "debian",
        prettyName: "Debian GNU/Linux 13",
        version: "v0.19.0",
        arch: "arm64",
        platform: "native",
      },
      hostname,
      identity: { mac },
      publicKey,
      tenantId: tenant,
    },
  });
  await client.acceptDevice({ params: { uid } });
}
