import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pass } from "node:timers/promises";
import { environmentWithout } from "../../support/command.ts";
import { SSHD, startSshd } from "../../support/sshd.ts";
import { admitKey, type SshService, startAgent, startSshService } from "../../support/sshFleet.ts";

/** Paths of the clients' private keys, by the type of the key. */
export interface Keys {
  readonly ed25519: string;
  readonly rsa: string;
  readonly "ecdsa-521": string;
}

/** An SSH server at 127.0.0.1 to which clients log in. */
export interface Target {
  readonly name: string;
  readonly isSshd: boolean;
  readonly user: string;
  readonly port: number;
  readonly keys: Keys;
  /** Fingerprints of the host keys. */
  readonly fingerprints: readonly string[];
  /**
   * Path of the configuration file for OpenSSH's client. The file defines the host `target`. If a plain sshd runs, the
   * file also defines this sshd as the host `behind`, for checks that jump through `target`.
   */
  readonly config: string;
  stop(): Promise<void>;
}

/** A target that could not be started. */
export interface FailedTarget {
  readonly name: string;
  readonly isSshd: boolean;
  /** True if a program that the target needs is not installed. */
  readonly isMissing: boolean;
  readonly reason: string;
}

/** Maximum time for an agent's enrollment, in milliseconds. */
const ENROLLMENT = 20_000;

interface Address {
  readonly user: string;
  readonly port: number;
}

const hostLines = (host: string, { user, port }: Address, key: string): string[] => [
  `Host ${host}`,
  "  HostName 127.0.0.1",
  `  Port ${port}`,
  `  User ${user}`,
  `  IdentityFile ${key}`,
];

/** The targets of a run: a plain sshd, and the devices of one service. */
export class Targets {
  readonly #folder: string;
  readonly #keys: Keys;
  #sshd: Address | undefined;
  #stopSshd = () => {};
  #fleet: Promise<SshService> | undefined;

  constructor(folder: string, keys: Keys) {
    this.#folder = folder;
    this.#keys = keys;
  }

  /** Starts the plain sshd. Checks at other targets forward connections to this sshd. */
  async sshd(): Promise<Target | FailedTarget> {
    const name = "sshd";
    const folder = this.#newFolder(name);
    const sshd = await startSshd(folder, ...Object.values(this.#keys));
    if (sshd === undefined) {
      return { name, isSshd: true, isMissing: true, reason: `${SSHD} is not installed` };
    }
    this.#sshd = sshd;
    this.#stopSshd = sshd.stop;
    return this.#target({ name, isSshd: true, ...sshd, stop: async () => {} });
  }

  /** Starts the project's agent. */
  async agent(name: string, flags: readonly string[]): Promise<Target | FailedTarget> {
    const fleet = await this.#service();
    try {
      const agent = await startAgent({
        url: fleet.service.url,
        tenant: fleet.tenant,
        hostname: name,
        folder: this.#newFolder(name),
        flags: ["--allow-forwarding", ...flags],
      });
      await fleet.client.acceptDevice({ params: { uid: agent.uid } });
      return await this.#device(name, fleet, agent.stop);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      return { name, isSshd: false, isMissing: false, reason };
    }
  }

  /** Starts an agent of another project, configured by environment variables. */
  async foreignAgent(name: string, path: string): Promise<Target | FailedTarget> {
    const fleet = await this.#service();
    const folder = this.#newFolder(name);
    const env = {
      SHELLHUB_SERVER_ADDRESS: fleet.service.url,
      SHELLHUB_TENANT_ID: fleet.tenant,
      SHELLHUB_PRIVATE_KEY: join(folder, "key"),
      SHELLHUB_PREFERRED_HOSTNAME: name,
      SHELLHUB_PREFERRED_IDENTITY: name,
    };
    // Selects the transport of the tunnel; agents since version 0.25 use transport 2 by default.
    const { SHELLHUB_TRANSPORT_VERSION } = process.env;
    const child = spawn(path, [], {
      cwd: folder,
      env: {
        ...environmentWithout("SHELLHUB_"),
        ...(SHELLHUB_TRANSPORT_VERSION && { SHELLHUB_TRANSPORT_VERSION }),
        ...env,
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk) => (output += String(chunk)));
    child.on("error", (error) => (output += error.message));
    const stop = () => ended(child);
    const deadline = Date.now() + ENROLLMENT;
    while (Date.now() < deadline && child.exitCode === null && child.pid !== undefined) {
      const devices = await fleet.client.getDevices({});
      const device = devices.find((one) => one.name === name);
      if (device?.online && device.status === "accepted") return await this.#device(name, fleet, stop);
      if (device?.status === "pending") await fleet.client.acceptDevice({ params: { uid: device.uid } });
      await pass(200);
    }
    await stop();
    return {
      name,
      isSshd: false,
      isMissing: false,
      reason: `the agent did not connect: ${output.slice(-500)}`,
    };
  }

  /** Stops the sshd and the service. */
  async stop(): Promise<void> {
    this.#stopSshd();
    await (await this.#fleet)?.stop();
  }

  #service(): Promise<SshService> {
    this.#fleet ??= this.#startService();
    return this.#fleet;
  }

  async #startService(): Promise<SshService> {
    const fleet = await startSshService({ flags: ["--ssh-forwarding", "on"] });
    for (const [name, key] of Object.entries(this.#keys)) await admitKey(fleet, key, name);
    return fleet;
  }

  #device(name: string, { namespace, port }: SshService, stop: () => Promise<void>): Target {
    return this.#target({ name, isSshd: false, user: `root@${namespace}.${name}`, port, stop });
  }

  #target(target: Pick<Target, "name" | "isSshd" | "user" | "port" | "stop">): Target {
    const lines = [
      ...hostLines("target", target, this.#keys.ed25519),
      ...(this.#sshd ? hostLines("behind", this.#sshd, this.#keys.ed25519) : []),
      "Host *",
      "  StrictHostKeyChecking no",
      "  UserKnownHostsFile /dev/null",
      "  GlobalKnownHostsFile /dev/null",
      "  IdentitiesOnly yes",
      "  IdentityAgent none",
      "  LogLevel ERROR",
      "  ConnectTimeout 30",
      "  BatchMode yes",
    ];
    const config = join(this.#folder, target.name, "ssh_config");
    writeFileSync(config, `${lines.join("\n")}\n`);
    const scanned = execFileSync("ssh-keyscan", ["-p", String(target.port), "127.0.0.1"], { stdio: "pipe" });
    const listed = execFileSync("ssh-keygen", ["-lf", "-"], { input: scanned }).toString();
    const fingerprints = listed.match(/SHA256:\S+/g) ?? [];
    return { ...target, keys: this.#keys, fingerprints, config };
  }

  #newFolder(name: string): string {
    const folder = join(this.#folder, name);
    mkdirSync(folder);
    return folder;
  }
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const exit = once(child, "exit");
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), 5_000);
  await exit;
  clearTimeout(timer);
}
