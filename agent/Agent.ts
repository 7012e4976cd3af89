import { readFileSync } from "node:fs";
import { release } from "node:os";
import { setTimeout as wait } from "node:timers/promises";
import { createClient, tokenCredential } from "@gatehouse-access/sdk";
import type { DeviceKey } from "./identity.ts";
import type { Log, SessionOptions } from "./Sessions.ts";
import { type LoginChecks, SshServer } from "./SshServer.ts";
import { runTunnel } from "./tunnel.ts";

/** What an agent is told at its start. */
export interface AgentOptions {
  /** Address of the service. */
  readonly url: string;
  readonly tenant: string;
  /** Name of a new device. */
  readonly hostname: string;
  /** What identifies the machine. */
  readonly mac: string;
  readonly key: DeviceKey;
  /** Version that is reported. */
  readonly version: string;
  /** Login names that get in; `*` stands for all. */
  readonly logins: readonly string[];
  readonly user: SessionOptions["user"];
  readonly allowForwarding: boolean;
  passwordFits(password: string): Promise<boolean>;
  readonly log: Log;
}

/** A device as the service knows it. */
interface Enrolled {
  readonly name: string;
  readonly token: string;
}

/** Milliseconds between attempts: doubled after each, to at most the second. A tunnel of that length begins anew. */
const FIRST_PAUSE = 1_000;
const LONGEST_PAUSE = 30_000;
/** How often the device reports, in milliseconds, and a random part more: a fleet must not report at once. */
const REPORT = 10 * 60_000;
const REPORT_SPREAD = 60_000;

/** The system's own name, as `os-release` has it. */
function system(): { readonly id: string; readonly prettyName: string } {
  try {
    const lines = readFileSync("/etc/os-release", "utf8").split("\n");
    const value = (name: string) =>
      lines
        .find((line) => line.startsWith(`${name}=`))
        ?.slice(name.length + 1)
        .replace(/^"|"$/g, "");
    return { id: value("ID") ?? process.platform, prettyName: value("PRETTY_NAME") ?? process.platform };
  } catch {
    return { id: process.platform, prettyName: `${process.platform} ${release()}` };
  }
}

const ARCHITECTURES: Readonly<Record<string, string>> = { x64: "amd64", ia32: "386" };

/** Enrols a device, keeps its tunnel, and serves the logins that come through it. */
export class Agent {
  readonly #options: AgentOptions;
  readonly #stop = new AbortController();

  constructor(options: AgentOptions) {
    this.#options = options;
  }

  /** Ends the tunnel, and all logins. */
  stop(): void {
    this.#stop.abort();
  }

  /** Runs until it is stopped; whatever else happens, it tries again. */
  async run(): Promise<void> {
    const { signal } = this.#stop;
    const { log } = this.#options;
    let pause = FIRST_PAUSE;
    while (!signal.aborted) {
      const started = Date.now();
      try {
        await this.#serve(await this.#enrol());
        log("info", "tunnel closed");
      } catch (error) {
        log("warn", "not connected with the service", { reason: (error as Error).message });
      }
      if (Date.now() - started > LONGEST_PAUSE) pause = FIRST_PAUSE;
      await wait(pause * (0.5 + Math.random() / 2), undefined, { signal }).catch(() => {});
      pause = Math.min(2 * pause, LONGEST_PAUSE);
    }
  }

  async #enrol(): Promise<Enrolled> {
    const { url, tenant, hostname, mac, key, version } = this.#options;
    const client = createClient({ url });
    try {
      const { name, namespace, token, uid } = await client.authDevice({
        body: {
          info: {
            ...system(),
            version,
            arch: ARCHITECTURES[process.arch] ?? process.arch,
            platform: "native",
          },
          hostname,
          identity: { mac },
          publicKey: key.publicKey,
          tenantId: tenant,
        },
      });
      this.#options.log("info", "enrolled", { device: name, namespace, uid });
      return { name, token };
    } finally {
      await client.close();
    }
  }

  /** Serves until the tunnel ends. */
  async #serve({ name, token }: Enrolled): Promise<void> {
    const { url, key, logins, user, allowForwarding, log, passwordFits } = this.#options;
    const client = createClient({ url, credential: tokenCredential(token) });
    const checks: LoginChecks = {
      served: (login) => logins.includes("*") || logins.includes(login),
      passwordFits,
      sign: async (fingerprint, data) =>
        (await client.authSshPublicKey({ body: { fingerprint, data } })).signature,
    };
    const server = new SshServer({ name, key, user, allowForwarding, log }, checks);
    const report = setInterval(
      () => {
        this.#enrol().catch((error: Error) =>
          log("warn", "the service took no report", { reason: error.message }),
        );
      },
      REPORT + Math.random() * REPORT_SPREAD,
    );
    try {
      await runTunnel({ url, token, server, log, signal: this.#stop.signal });
    } finally {
      clearInterval(report);
      server.stop();
      await client.close();
    }
  }
}
