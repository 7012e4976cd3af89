// Starts the bundled service for the demo, and creates a fleet without a policy: users and enrolled devices.
import { execFile } from "node:child_process";
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type Client, createClient } from "@gatehouse-access/sdk";
import { type Child, startChild } from "./startChild.ts";

const COMMAND = fileURLToPath(new URL("../../server/bin/gatehouse-server.js", import.meta.url));

export interface Service {
  readonly url: string;
  /** Port on which the service accepts SSH logins to devices. */
  readonly sshPort: string;
  readonly pid: number;
  /** A promise that rejects with the last output lines of the service if the service exits before `stop`. */
  readonly died: Promise<never>;
  admin(...args: string[]): Promise<string>;
  adminWithPassword(password: string, ...args: string[]): Promise<string>;
  /** Stops the service and waits for its exit. */
  stop(): Promise<void>;
  /** Lets the service continue to run after the demo. */
  release(): void;
}

/**
 * Runs `gatehouse-server serve` on a free loopback port, with its data in `folder`.
 * @throws ChildError with the last output lines of the service if the service does not start
 */
export async function startService(folder: string): Promise<Service> {
  const dataFolder = join(folder, "data");
  const env = { ...process.env, GATEHOUSE_DATA_DIR: dataFolder, GATEHOUSE_LOG_LEVEL: "info" };
  const ports = ["--host", "127.0.0.1", "--port", "0", "--ssh-host", "127.0.0.1", "--ssh-port", "0"];
  let sshPort = "";
  const child: Child<string> = await startChild([COMMAND, "serve", ...ports], {
    name: "The service",
    env,
    detached: true,
    ready(line) {
      const { msg, address, port } = entryIn(line);
      if (msg === "listening for SSH") sshPort = String(port);
      return msg === "listening" ? address : undefined;
    },
  });
  const run = promisify(execFile);
  const admin = async (...args: string[]) =>
    (await run(process.execPath, [COMMAND, "admin", ...args], { env })).stdout.trim();
  return {
    url: child.ready,
    sshPort,
    pid: child.process.pid ?? 0,
    died: child.died,
    admin,
    async adminWithPassword(password, ...args) {
      const running = run(process.execPath, [COMMAND, "admin", ...args, "--password-stdin"], { env });
      running.child.stdin?.end(`${password}\n`);
      return (await running).stdout.trim();
    },
    stop: child.stop,
    release() {
      child.process.stdout?.destroy();
      child.process.stderr?.destroy();
      child.process.unref();
    },
  };
}

function entryIn(line: string): { readonly msg?: string; readonly address?: string; readonly port?: number } {
  return line.startsWith("{") ? JSON.parse(line) : {};
}

export interface Login {
  readonly username: string;
  readonly password: string;
}

/** Creates the first user. The setup request requires a signature that only the operator of the service can create. */
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

/** Creates a user who is not a member of a namespace. */
export async function createUser(service: Service, username: string, name: string): Promise<Login> {
  const email = `${username}@example.org`;
  const password = newPassword();
  await service.adminWithPassword(
    password,
    "user",
    "create",
    "--username",
    username,
    "--email",
    email,
    "--name",
    name,
  );
  return { username, password };
}

const newPassword = () => randomBytes(12).toString("base64url");

/** Returns the MAC address of a device of the fleet. */
export const macOf = (index: number): string => `02:00:00:00:00:${index.toString(16).padStart(2, "0")}`;

/** Enrolls a device like an agent does, and accepts the device. */
export async function enroll(client: Client, tenant: string, hostname: string, index: number): Promise<void> {
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
