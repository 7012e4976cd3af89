import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, type IncomingHttpHeaders, type IncomingMessage, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { Connection } from "../../../../provider/service/connection.ts";
import { type Client, createClient, passwordCredential } from "../../../../sdk/index.ts";
import { agentCall, type Fleet, startFleet } from "../../../support/fleet.ts";
import { startIssuer, type TestIssuer } from "../../../support/issuer.ts";
import { type SharedClock, startClock } from "./clock.ts";

/** The token that the service's internal listener requires. */
const INTERNAL_TOKEN = "the-internal-token-of-the-tests-00";

/** The login names that the patterns of the programs distinguish. */
export const LOGINS = ["root", "otheruser", "ana"];
/** The client addresses that the patterns of the programs distinguish. */
export const ADDRESSES = ["192.0.2.1", "10.0.0.1", "203.0.0.1"];
/** Users with an account, who are members in some rounds. */
export const USERS = ["ana", "bob", "cem"];
/** The names of the devices at the beginning of each round. The last device is pending until the first round accepts it. */
const DEVICES = ["edge-01", "edge-02", "db-01", "lab-01"];
/** The claims of tokens, of which each trusted workload accepts one. */
export const JOBS = ["prod", "staging"].map((environment) => ({
  repository: "octo-org/octo-repo",
  environment,
}));
export const AUDIENCE = "gatehouse";

export const emailOf = (user: string) => `${user}@example.com`;
/** The MAC address of a device, by its number. */
export const macOf = (index: number) => `02:00:00:00:7a:0${index}`;

/** A login that the service allows: key, login name, address and uid of the device. */
export type Login = string;

export const loginOf = (fingerprint: string, login: string, address: string, uid: string): Login =>
  `${fingerprint} ${login} ${address} ${uid}`;

/** The decisions of the service at one time. */
export interface Decisions {
  /** The allowed logins, for {@link LOGINS}, {@link ADDRESSES} and the accepted devices. */
  readonly allowed: ReadonlySet<Login>;
  /**
   * The role of each user, API key and token of a job. Users without a membership, and credentials that the service
   * refuses, are omitted. Keys: `member <e-mail>`, `api key <time of creation>`, `job <environment>`.
   */
  readonly roles: ReadonlyMap<string, string>;
  /** The names of the API keys, by the time of creation. */
  readonly apiKeys: ReadonlyMap<string, string>;
  readonly settings: Readonly<Record<string, unknown>>;
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** A service, its users and devices, and the internal operations by which an SSH gateway asks for decisions. */
export class TruthService {
  readonly fleet: Fleet;
  readonly issuer: TestIssuer;
  readonly clock: SharedClock;
  /** An administrator who changes objects manually. */
  readonly boss: Client;
  /** A folder without policy files. */
  readonly folder = mkdtempSync(join(tmpdir(), "gatehouse-test-"));
  readonly uids: readonly string[];
  /** Ids of the users by name. */
  readonly ids: ReadonlyMap<string, string>;
  /** The secrets of API keys that were created manually, by the time of creation. */
  readonly secrets = new Map<string, string>();
  readonly #internal: string;
  readonly #tokens = new Map<string, { readonly token: string; readonly created: number }>();
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 8 });

  private constructor(
    given: Pick<TruthService, "fleet" | "issuer" | "clock" | "uids" | "ids" | "namespace"> & {
      readonly internal: string;
    },
    boss: Client,
  ) {
    this.fleet = given.fleet;
    this.issuer = given.issuer;
    this.clock = given.clock;
    this.uids = given.uids;
    this.ids = given.ids;
    this.namespace = given.namespace;
    this.boss = boss;
    this.#internal = given.internal;
  }

  /** Starts a service with users and devices, and the clock. */
  static async start(): Promise<TruthService> {
    const issuer = await startIssuer();
    const clock = startClock();
    const fleet = await startFleet([], {
      env: {
        GATEHOUSE_INTERNAL_TOKEN: INTERNAL_TOKEN,
        GATEHOUSE_INTERNAL_PORT: "0",
        GATEHOUSE_WORKLOAD_ISSUER_NETWORKS: "127.0.0.0/8",
        NODE_EXTRA_CA_CERTS: issuer.caFile,
        ...clock.env,
      },
    });
    const { service, client, tenant } = fleet;
    const uids: string[] = [];
    for (const [index, name] of DEVICES.entries()) uids.push(await fleet.enroll(name, macOf(index)));
    const ids = new Map<string, string>();
    for (const username of ["boss", ...USERS]) {
      ids.set(username, (await service.createUser({ username, password: "correct-horse" })).id);
    }
    ids.set("admin", (await client.getUserInfo()).id);
    await client.inviteMember({
      params: { tenant },
      body: { email: emailOf("boss"), role: "administrator" },
    });
    const listener = service.logs().find(({ msg }) => msg === "listening for internal operations");
    const internal = String(listener?.address);
    const boss = createClient({
      url: service.url,
      credential: passwordCredential({ username: "boss", password: "correct-horse" }),
    });
    const { name: namespace } = await client.getNamespace({ params: { tenant } });
    return new TruthService({ fleet, issuer, clock, uids, ids, namespace, internal }, boss);
  }

  /** The uid of the device that is pending at the beginning of each round. */
  pendingUid = "";

  /** Restores the names of all devices, and the pending device. */
  async restoreDevices(): Promise<void> {
    const { client, tenant, uids } = this;
    for (const [index, uid] of uids.entries()) {
      await client.updateDevice({ params: { uid }, body: { name: DEVICES[index] ?? "" } });
    }
    const devices = await client.getDevices({ query: { perPage: 100 } });
    const pending = devices.find(({ uid }) => uid === this.pendingUid);
    if (pending?.status === "pending") return;
    if (pending) await client.deleteDevice({ params: { uid: pending.uid } });
    this.pendingUid = (await agentCall(client, "fresh-01", macOf(9), tenant)).uid;
  }

  get tenant(): string {
    return this.fleet.tenant;
  }

  /** The name of the namespace. */
  readonly namespace: string;

  get client(): Client {
    return this.fleet.client;
  }

  connection(): Connection {
    return new Connection(this.client, { defaultTenant: this.tenant });
  }

  /** Returns the settings of a provider that acts as the first user. A token saves the login in each run. */
  async env(): Promise<Readonly<Record<string, string>>> {
    const { GATEHOUSE_USERNAME: _name, GATEHOUSE_PASSWORD: _password, ...env } = this.fleet.env;
    return { ...env, GATEHOUSE_TOKEN: await this.#tokenOf("admin") };
  }

  /** Asks the service for all decisions. @param secrets the secrets of API keys, by the time of creation */
  async decisions(secrets: ReadonlyMap<string, string>): Promise<Decisions> {
    const [{ name: domain, settings = {} }, apiKeys, keys, devices] = await Promise.all([
      this.client.getNamespace({ params: { tenant: this.tenant } }),
      this.client.listApiKeys({ query: { perPage: 100 } }),
      this.client.getPublicKeys({ query: { perPage: 100 } }),
      this.client.getDevices({ query: { perPage: 100, status: "accepted" } }),
    ]);
    const allowed = new Set<Login>();
    await Promise.all(
      devices.flatMap(({ uid, name, tags }) =>
        LOGINS.map(async (login) => {
          const admitted = await Promise.all(
            keys.map(async ({ fingerprint }) => {
              const path = `/internal/sshkeys/public-keys/evaluate/${encodeURIComponent(fingerprint)}/${login}`;
              const body = { name, tags, tenant_id: this.tenant };
              return JSON.parse((await this.#ask("POST", path, body)).text) ? [fingerprint] : [];
            }),
          );
          const admitting = admitted.flat();
          // Without a key that admits the login, the gateway does not ask the firewall.
          if (admitting.length === 0) return;
          for (const address of ADDRESSES) {
            const query = new URLSearchParams({ domain, name, username: login, ip_address: address });
            const { status } = await this.#ask("GET", `/internal/firewall/rules/evaluate?${query}`);
            if (status !== 200) continue;
            for (const fingerprint of admitting) allowed.add(loginOf(fingerprint, login, address, uid));
          }
        }),
      ),
    );
    return {
      allowed,
      settings,
      roles: await this.#roles(new Map([...this.secrets, ...secrets])),
      apiKeys: new Map(apiKeys.map(({ createdAt, name }) => [createdAt, name])),
    };
  }

  async #roles(secrets: ReadonlyMap<string, string>): Promise<Map<string, string>> {
    const roles = new Map<string, string>();
    const add = async (subject: string, headers: Readonly<Record<string, string>>) => {
      const response = await this.#ask("GET", "/internal/auth", undefined, headers);
      const { "x-role": role, "x-tenant-id": tenant } = response.headers;
      if (response.status === 200 && typeof role === "string" && tenant === this.tenant)
        roles.set(subject, role);
    };
    await Promise.all([
      ...["boss", ...USERS].map(async (user) =>
        add(`member ${emailOf(user)}`, { authorization: `Bearer ${await this.#tokenIn(user)}` }),
      ),
      ...[...secrets].map(([created, secret]) => add(`api key ${created}`, { "x-api-key": secret })),
      ...JOBS.map(async (claims) => {
        const token = await this.issuer.mint({ ...claims, sub: "job", aud: AUDIENCE });
        const response = await fetch(`${this.fleet.service.url}/api/auth/workload`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ tenant: this.tenant, token }),
        });
        if (response.ok) {
          const session = (await response.json()) as { token: string };
          await add(`job ${claims.environment}`, { authorization: `Bearer ${session.token}` });
        } else await response.arrayBuffer();
      }),
    ]);
    return roles;
  }

  /**
   * Returns a token of a user. The token of a member is valid while the user is a member, and the service reads the role
   * with each request, so a token is created only every hour.
   */
  async #tokenIn(user: string): Promise<string> {
    const known = this.#tokens.get(user);
    if (known && known.created + 3_600_000 > Date.now()) return known.token;
    const response = await this.#ask("GET", `/internal/auth/token/${this.ids.get(user)}`);
    const { token, tenant } = JSON.parse(response.text) as { token: string; tenant: string };
    if (tenant === this.tenant) this.#tokens.set(user, { token, created: Date.now() });
    return token;
  }

  async #tokenOf(user: string): Promise<string> {
    const response = await this.#ask("GET", `/internal/auth/token/${this.ids.get(user)}`);
    return (JSON.parse(response.text) as { token: string }).token;
  }

  async #ask(
    method: string,
    path: string,
    body?: object,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Answer> {
    const own = { "content-type": "application/json", "x-internal-token": INTERNAL_TOKEN };
    const sent = request(this.#internal + path, {
      method,
      agent: this.#agent,
      headers: { ...own, ...headers },
    });
    sent.end(body && JSON.stringify(body));
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    const { statusCode: status = 0, headers: received } = response;
    const answer = { status, headers: received, text: await text(response) };
    if (status >= 500) throw new Error(`${path}: ${status} ${answer.text}`);
    return answer;
  }

  async stop(): Promise<void> {
    rmSync(this.folder, { recursive: true });
    this.#agent.destroy();
    await this.boss.close();
    await this.fleet.stop();
    await this.issuer.stop();
    this.clock.stop();
  }
}
