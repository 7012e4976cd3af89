import { sign } from "node:crypto";
import { readFileSync } from "node:fs";
import { release } from "node:os";
import {
  type Client,
  createClient,
  NotFoundError,
  type ProxyFor,
  RequestError,
  RetryAfterError,
  SYSTEM_TIMING,
  type Timing,
  tokenCredential,
} from "@gatehouse-access/sdk";
import { devices } from "@gatehouse-access/sdk/contract";
import { MINUTE } from "@gatehouse-access/sdk/times";
import { ConnectionPauses } from "./ConnectionPauses.ts";
import type { DeviceKey } from "./identity.ts";
import type { ChannelOptions } from "./SessionChannel.ts";
import { SshServer } from "./SshServer.ts";
import type { ServicePin } from "./servicePin.ts";
import { RefusedError, runTunnel } from "./tunnel.ts";

/** The configuration of an agent. */
interface AgentOptions extends ChannelOptions {
  /** Address of the service. */
  readonly url: string;
  /** The proxies. @default no proxy */
  readonly proxyFor?: ProxyFor;
  readonly tenant: string;
  /** Name of a new device. */
  readonly hostname: string;
  /** Identifier of the machine, for example the MAC address of a network card. */
  readonly mac: string;
  readonly key: DeviceKey;
  readonly pin: ServicePin;
  /** Version that the agent reports to the service. */
  readonly version: string;
  /** Accepted login names; `*` accepts all names. */
  readonly logins: readonly string[];
  passwordFits(password: string): Promise<boolean>;
  /**
   * Clock, random numbers and sleep function of the agent. @default the clock, random numbers and sleep function of the
   * system
   */
  readonly timing?: Timing;
}

/** The name of the enrolled device and its token, as returned by the service. */
interface Enrolled {
  readonly name: string;
  readonly token: string;
}

/**
 * Minimum duration of a stable tunnel, in milliseconds. After a tunnel that was open for longer, the agent resets the
 * reconnect delay.
 */
const LASTING = 30_000;
/**
 * HTTP statuses with which the service rejects the token of a tunnel: the token is revoked, or the device is deleted.
 * After any other status, such as 429 or 503, the token is still valid, and the agent repeats the request later.
 */
const TOKEN_REFUSALS: ReadonlySet<number> = new Set([401, 403, 404]);
/** HTTP statuses that a service without support for challenges returns for a challenge request. */
const WITHOUT_CHALLENGES: ReadonlySet<number> = new Set([401, 403, 404, 405]);
/**
 * Interval between reports of the device, in milliseconds. A random part is added to each interval, so that the devices
 * of a fleet do not report at the same time.
 */
const REPORT = 10 * MINUTE + 10_000;
const REPORT_SPREAD = 50_000;

/** Returns the name of the operating system from `os-release`. */
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

/**
 * The agent of a device: enrolls the device, keeps its tunnel open, and serves the logins that arrive through the
 * tunnel.
 */
export class Agent {
  readonly #options: AgentOptions;
  readonly #server: SshServer;
  readonly #timing: Timing;
  readonly #stop = new AbortController();
  #enrolled: Enrolled | undefined;
  /** True after this process has enrolled the device for the first time. */
  #wasEnrolled = false;

  constructor(options: AgentOptions) {
    this.#options = options;
    this.#timing = options.timing ?? SYSTEM_TIMING;
    const { key, pin, logins, passwordFits } = options;
    this.#server = new SshServer(key, options, {
      served: (login) => logins.includes("*") || logins.includes(login),
      passwordFits,
      serviceKey: () => pin.key,
      device: () => this.#enrolled?.name ?? "",
      sign: (fingerprint, data) => this.#sign(fingerprint, data),
    });
  }

  /** Closes the tunnel and all open logins. */
  stop(): void {
    this.#stop.abort();
    this.#server.stop();
  }

  /**
   * Runs the agent until it is stopped, and reconnects after every failure. Open logins continue if the tunnel is lost.
   * The agent enrolls the device at its start, and enrolls it again only if the service rejects the token.
   * @throws Error if the service refuses the first enrollment of the device, and a retry cannot succeed
   */
  async run(): Promise<void> {
    const { signal } = this.#stop;
    const { log } = this.#options;
    const { now, random, sleep } = this.#timing;
    const pauses = new ConnectionPauses(random);
    while (!signal.aborted) {
      const started = now();
      const isTokenNew = this.#enrolled === undefined;
      let retryAfter: number | undefined;
      try {
        await this.#holdTunnel(this.#enrolled ?? (await this.#enroll()));
        log("info", "tunnel closed");
        if (now() - started > LASTING) pauses.reset();
      } catch (error) {
        if (this.#isFinal(error)) {
          const { url, tenant } = this.#options;
          const text = `The service ${url} has no namespace ${tenant}. Set --tenant (GATEHOUSE_AGENT_TENANT) to the id of a namespace: \`gatehouse namespace list\` prints the ids.`;
          throw new Error(text, { cause: error });
        }
        if (error instanceof RefusedError && TOKEN_REFUSALS.has(error.status)) {
          this.#enrolled = undefined;
          if (!isTokenNew) pauses.reset();
        }
        if (error instanceof RefusedError || error instanceof RetryAfterError) retryAfter = error.retryAfter;
        if (!signal.aborted) {
          log("warn", "cannot connect to the service", { reason: (error as Error).message });
        }
      }
      await sleep(pauses.next(retryAfter), signal).catch((error: unknown) => {
        if (!signal.aborted) throw error;
      });
    }
  }

  /**
   * Returns true if a retry cannot succeed, because the service has no namespace with this id. Only an error code in
   * the response proves that the response comes from the service and not from a proxy. If the device was enrolled
   * before, the agent retries every request: the namespace can exist again after the operator restores a backup.
   */
  #isFinal(error: unknown): boolean {
    const wasEnrolled = this.#wasEnrolled || this.#options.pin.key !== undefined;
    return (
      error instanceof NotFoundError &&
      error.operation === "authDevice" &&
      error.isFromService &&
      !wasEnrolled
    );
  }

  async #enroll(): Promise<Enrolled> {
    const { url, proxyFor, tenant, hostname, mac, key, pin, version, log } = this.#options;
    // The client does not retry requests, because `run` retries the enrollment after a delay.
    const client = createClient({ url, ...(proxyFor && { proxyFor }), retry: { attempts: 1 } });
    try {
      const proof = await this.#proof(client);
      const { name, namespace, token, uid, agentKey } = await client.authDevice(
        {
          body: {
            info: {
              ...system(),
              version,
              arch: ARCHITECTURES[process.arch] ?? process.arch,
              platform: "gatehouse",
            },
            hostname,
            identity: { mac },
            publicKey: key.publicKey,
            tenantId: tenant,
            ...(proof && { proof }),
          },
        },
        { signal: this.#stop.signal },
      );
      if (agentKey !== undefined) pin.learn(agentKey, log);
      log("info", "enrolled", { device: name, namespace, uid, proven: proof !== undefined });
      this.#enrolled = { name, token };
      this.#wasEnrolled = true;
      return this.#enrolled;
    } finally {
      await client.close();
    }
  }

  /**
   * Returns a challenge from the service and the signature of this challenge. They prove that this agent has the
   * device's private key. Returns undefined if the service does not support challenges, as in version 0.19.
   */
  async #proof(client: Client): Promise<{ challenge: string; signature: string } | undefined> {
    const { tenant, key } = this.#options;
    let challenge: string;
    try {
      ({ challenge } = await client.challengeDevice({}, { signal: this.#stop.signal }));
    } catch (error) {
      if (error instanceof RequestError && WITHOUT_CHALLENGES.has(error.status ?? 0)) return undefined;
      throw error;
    }
    const text = Buffer.from(devices.proofText(tenant, challenge));
    return { challenge, signature: sign("sha256", text, key.privateKey).toString("base64") };
  }

  /**
   * Runs the tunnel, and sends reports while the tunnel is open. If the service rejects a report, the agent sends the
   * next report only after the usual interval. This interval is longer than any time that a service requests with
   * `Retry-After`.
   */
  async #holdTunnel({ token }: Enrolled): Promise<void> {
    const { url, proxyFor, log } = this.#options;
    const proxy = proxyFor?.(new URL(url));
    const report = setInterval(
      () => {
        this.#enroll().catch((error: Error) =>
          log("warn", "the service rejected a report of the device", { reason: error.message }),
        );
      },
      REPORT + this.#timing.random() * REPORT_SPREAD,
    );
    try {
      const { now } = this.#timing;
      await runTunnel({ url, proxy, token, server: this.#server, log, signal: this.#stop.signal, now });
    } finally {
      clearInterval(report);
    }
  }

  async #sign(fingerprint: string, data: string): Promise<string> {
    if (this.#enrolled === undefined) throw new Error("the device is currently not enrolled");
    const { url, proxyFor } = this.#options;
    const client = createClient({
      url,
      ...(proxyFor && { proxyFor }),
      credential: tokenCredential(this.#enrolled.token),
    });
    try {
      return (await client.authSshPublicKey({ body: { fingerprint, data } })).signature;
    } finally {
      await client.close();
    }
  }
}
