import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { ResponseOf } from "@gatehouse-access/sdk";
import { afterAll, beforeAll, describe, expect } from "vitest";
import type { ServiceOptions } from "../support/service.ts";
import {
  type AgentOptions,
  admitKey,
  type Login,
  newKey,
  openFolder,
  type SshService,
  spawnSsh,
  ssh,
  startAgent,
  startSshService,
  type TestAgent,
  withoutSsh,
} from "../support/sshFleet.ts";

const AGENT = fileURLToPath(new URL("../../agent/bin/gatehouse-agent.js", import.meta.url));

type Session = ResponseOf<"getSession">;

type AgentSettings = Pick<AgentOptions, "env" | "flags">;

interface SshTargetOptions extends Pick<ServiceOptions, "env" | "flags"> {
  /** Options of the agent. If they are only known once the tests start, set a function that returns them. */
  readonly agent?: AgentSettings | (() => AgentSettings);
  /** Runs after the device has been accepted, before the first test. */
  readonly begin?: (target: SshTarget) => Promise<unknown>;
}

/** A service with an SSH entry, and an accepted device with its agent. */
export class SshTarget {
  static readonly hostname = "edge-1";
  readonly #options: SshTargetOptions;
  readonly #folder = openFolder();
  #fleet: SshService | undefined;
  #agent: TestAgent | undefined;
  /** Path of the private key for logins, after {@link SshTarget.createKey}. The key allows every login name. */
  key = "";
  /** The fingerprint of the key. */
  fingerprint = "";

  constructor(options: SshTargetOptions) {
    this.#options = options;
  }

  /** A folder that the agent's user can access. */
  get folder(): string {
    return this.#folder.path;
  }

  get fleet(): SshService {
    if (this.#fleet === undefined) throw new Error("the service has not been started");
    return this.#fleet;
  }

  get agent(): TestAgent {
    if (this.#agent === undefined) throw new Error("the agent has not been started");
    return this.#agent;
  }

  /** The login name and host name with which clients log in to the device. */
  get to(): string {
    return `root@${this.fleet.namespace}.${SshTarget.hostname}`;
  }

  async start(): Promise<void> {
    const { agent: _, begin, ...service } = this.#options;
    this.#fleet = await startSshService(service);
    await this.startAgent();
    await this.fleet.client.acceptDevice({ params: { uid: this.agent.uid } });
    await begin?.(this);
  }

  /** Creates the key of this target with OpenSSH. */
  async createKey(): Promise<void> {
    this.key = newKey(this.folder, "key");
    this.fingerprint = await admitKey(this.fleet, this.key);
  }

  /** Starts or restarts the agent. */
  async startAgent(): Promise<void> {
    const { service, tenant } = this.fleet;
    const device = { url: service.url, tenant, hostname: SshTarget.hostname, folder: this.folder };
    const { agent = {} } = this.#options;
    this.#agent = await startAgent({ ...device, ...(typeof agent === "function" ? agent() : agent) });
  }

  async stop(): Promise<void> {
    await this.#agent?.stop();
    await this.#fleet?.stop();
    this.#folder.remove();
  }

  #login = (more: Partial<Login>): Login => ({ to: this.to, port: this.fleet.port, key: this.key, ...more });

  /** Runs OpenSSH's client with the key of this target until the client exits. */
  readonly ssh = (more: Partial<Login> = {}, stdin?: string) => ssh(this.#login(more), stdin);

  /** Starts OpenSSH's client with the key of this target. */
  readonly spawnSsh = (more: Partial<Login> = {}) => spawnSsh(this.#login(more));

  /** Waits until the latest session matches. Returns the session. */
  async session(matches: (session: Session) => boolean): Promise<Session> {
    const { client } = this.fleet;
    let latest: Session | undefined;
    await expect
      .poll(async () => {
        const [first] = await client.getSessions({});
        latest = first && (await client.getSession({ params: { uid: first.uid } }));
        return latest !== undefined && matches(latest);
      })
      .toBe(true);
    return latest as Session;
  }
}

/** Returns a target without a key. The target runs during the surrounding tests. */
export function sharedTarget(options: SshTargetOptions): SshTarget {
  const target = new SshTarget(options);
  beforeAll(() => target.start());
  afterAll(() => target.stop());
  return target;
}

/**
 * Like `describe`, but starts an {@link SshTarget} with a key before the tests and passes it to them. Skips the tests if
 * OpenSSH is not installed.
 */
export function describeSsh(
  title: string,
  options: SshTargetOptions,
  tests: (target: SshTarget) => void,
): void {
  describe.skipIf(withoutSsh)(`${title}${withoutSsh ? ` (${withoutSsh})` : ""}`, () => {
    const target = sharedTarget(options);
    beforeAll(() => target.createKey());
    tests(target);
  });
}

/** Returns the environment variable with which an agent accepts the password. */
export function passwordSetting(password: string): { readonly GATEHOUSE_AGENT_PASSWORD_HASH: string } {
  const hash = execFileSync(process.execPath, [AGENT, "hash-password"], { input: `${password}\n` });
  return { GATEHOUSE_AGENT_PASSWORD_HASH: hash.toString().trim() };
}
