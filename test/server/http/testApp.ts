import { generateKeyPairSync, sign } from "node:crypto";
import { tmpdir } from "node:os";
import {
  acknowledgement,
  devices,
  isAcknowledged,
  JSON_TYPE,
  notFound,
  type Operation,
  type Operations,
  operations,
} from "@gatehouse-access/sdk/contract";
import { expect } from "vitest";
import { buildApp } from "../../../server/app.ts";
import { DecisionTurns } from "../../../server/DecisionTurns.ts";
import type { Database, DatabaseLocation } from "../../../server/db/Database.ts";
import { openDatabase } from "../../../server/db/openDatabase.ts";
import { tooManyDecisions } from "../../../server/errors.ts";
import { Heartbeats } from "../../../server/features/devices/heartbeats.ts";
import { deliverMails } from "../../../server/features/outbox/deliverMails.ts";
import { StoredAgentKey } from "../../../server/features/privateKeys/privateKeys.ts";
import { FullRecordings } from "../../../server/features/sessions/FullRecordings.ts";
import { documentReader, type LookupAll } from "../../../server/features/trustedWorkloads/issuerDocuments.ts";
import { IssuerKeys } from "../../../server/features/trustedWorkloads/issuerKeys.ts";
import { insertUser } from "../../../server/features/users/account/createUser.ts";
import { Gateway } from "../../../server/gateway/Gateway.ts";
import { signUserToken } from "../../../server/http/access/tokens.ts";
import { CONNECTION_ERRORS, commonErrors } from "../../../server/http/contract/openapi.ts";
import { Enrollments } from "../../../server/http/limits/Enrollments.ts";
import type { Mail } from "../../../server/mail/mail.ts";
import { makeMetrics } from "../../../server/metrics.ts";
import { NamespacePatterns } from "../../../server/NamespacePatterns.ts";
import { openPaymentGateway } from "../../../server/payments/openPaymentGateway.ts";
import { AccessClock } from "../../../server/process/accessClock.ts";
import { UNKNOWN_POSITION } from "../../../server/process/positions.ts";
import { sealerOf } from "../../../server/secrets/sealer.ts";
import type { SigningKeys } from "../../../server/secrets/signingKeys.ts";
import type { Services } from "../../../server/services.ts";
import { readConfig, type ServiceSettings } from "../../../server/settings/readConfig.ts";
import { newDatabase } from "../db/database.ts";

export interface Credentials {
  readonly token?: string | undefined;
  readonly apiKey?: string | undefined;
}

export interface CallOptions extends Credentials {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number>>;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

// biome-ignore lint/suspicious/noExplicitAny: tests read responses whose shape `call` has checked
type Body = any;

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Body;
  readonly text: string;
}

interface IssuerFailure {
  readonly issuer: string;
  readonly error: unknown;
}

/** The service in the test's process, with real HTTP on a free port, a real database, and an adjustable clock. */
export interface TestApp {
  readonly url: string;
  readonly services: Services;
  readonly gateway: Gateway;
  /** The mails that the service has sent. */
  readonly mails: readonly Mail[];
  /** The reasons why the service could not read the keys of issuers. */
  readonly issuerFailures: readonly IssuerFailure[];
  /** Delivers the waiting mails. */
  deliverMails(): Promise<void>;
  /** Advances the service's clock by the given number of seconds. */
  pass(seconds: number): void;
  /** Stops the clock at a whole second. Afterwards, only `pass` advances the clock. */
  stopClock(): void;
  /** Sends any request. Returns the response unchecked. */
  send(method: string, path: string, options?: RequestInit): Promise<Answer>;
  /** Calls an operation of the contract. The response must conform to the contract. */
  call(id: keyof Operations, options?: CallOptions): Promise<Answer>;
  /** Creates a confirmed user with a token. Also creates a namespace if a namespace name is given. */
  user(username: string, namespace?: string): Promise<TestUser>;
  /**
   * Creates a new token for the user's namespace. Tests use it after they have advanced the clock beyond the life of a
   * token.
   */
  tokenOf(user: Pick<TestUser, "id" | "username" | "tenant">): Promise<string>;
  stop(): Promise<void>;
}

export interface TestUser {
  readonly id: string;
  readonly username: string;
  readonly email: string;
  readonly token: string;
  readonly tenant: string;
  /**
   * Calls an operation with the user's token, like {@link TestApp.call}. The default of the path parameter `tenant` is
   * the user's namespace.
   */
  call(id: keyof Operations, options?: CallOptions): Promise<Answer>;
}

export const PASSWORD = "correct-horse";
/** The public URL, which cloud instances require. */
export const PUBLIC_URL = "https://gate.example.org";

// All tests of a file share one key pair, because the generation of a key pair takes longer than most tests.
const pair = generateKeyPairSync("rsa", { modulusLength: 2048 });
function signingKeys(): SigningKeys {
  const keys: SigningKeys = {
    kid: "test",
    ...pair,
    find: async (kid) => (kid === keys.kid ? keys.publicKey : undefined),
  };
  return keys;
}

// The bcrypt hash of PASSWORD with the lowest cost. A higher cost would slow down the tests.
const PASSWORD_HASH = "$2b$04$3ftFzoWkFr8fnKjYZVVv5.E2rxfPjApGCskbnaBtYSs5s032k2Bbu";

// Most limits are off (0), because tests log in, enroll and list more often than users do.
const SETTINGS: ServiceSettings = {
  ...readConfig({}, {}).settings,
  maximumPendingDevices: 0,
  maximumFirewallRules: 0,
  maximumConnectors: 0,
  maximumRecording: 1,
  agentImage: "registry.example.org/agent:v1",
  billingDevicePrice: 250,
  loginsPerAddress: 0,
  loginsPerAccount: 0,
  reportsPerAddress: 0,
  enrollmentsPerAddress: 0,
  listBacklog: 0,
  sshEnvironment: [],
  sshStartupsPerAddress: 0,
  sshRefusalsPerAddress: 0,
};

type OpenDatabase = (location: DatabaseLocation) => Promise<Pick<Database, "client" | "close">>;

/** Systems outside the service, which a test replaces. */
interface Surroundings {
  readonly positionOf?: Services["positionOf"];
  /** Looks up the addresses of issuers of workloads' tokens. */
  readonly lookupAll?: LookupAll;
}

/**
 * Starts a service for tests.
 * @param open opens the database; set by tests that observe the database
 */
export async function startApp(
  settings: Partial<ServiceSettings> = {},
  open: OpenDatabase = openDatabase,
  { positionOf = () => UNKNOWN_POSITION, lookupAll }: Surroundings = {},
): Promise<TestApp> {
  const { location, remove } = await newDatabase();
  const database = await open(location);
  let ahead = 0;
  let stoppedAt: number | undefined;
  const mails: Mail[] = [];
  const issuerFailures: IssuerFailure[] = [];
  const now = () => new Date((stoppedAt ?? Date.now()) + ahead);
  const base = {
    db: database.client,
    settings: { ...SETTINGS, ...(settings.edition === "cloud" && { publicUrl: PUBLIC_URL }), ...settings },
    now,
    // The clock uses the adjustable time, because it has measured no time of the database.
    accessTime: new AccessClock({ db: database.client, now }).time,
  };
  const sealer = sealerOf("a secret of the tests");
  const services: Services = {
    ...base,
    keys: signingKeys(),
    sealer,
    agentKey: new StoredAgentKey({ ...base, sealer }),
    mailer: {
      send: async (mail) => {
        mails.push(mail);
      },
    },
    metrics: makeMetrics(),
    billing: openPaymentGateway(base),
    heartbeats: new Heartbeats(database.client, (error) => {
      throw error;
    }),
    enrollments: new Enrollments(),
    decisions: new DecisionTurns(tooManyDecisions),
    patterns: new NamespacePatterns(),
    fullRecordings: new FullRecordings(),
    issuerKeys: new IssuerKeys(
      documentReader({
        networks: base.settings.workloadIssuerNetworks,
        proxy: base.settings.workloadIssuerProxy,
        lookupAll,
      }),
      now,
      (issuer, error) => issuerFailures.push({ issuer, error }),
    ),
    positionOf,
  };
  const gateway = new Gateway(services, { folder: tmpdir(), schema: undefined, log: () => app.log });
  const app = await buildApp(services, gateway);
  const url = await app.listen({ host: "127.0.0.1", port: 0 });

  const send: TestApp["send"] = (method, path, options) => sendTo(url + path, { method, ...options });
  const call: TestApp["call"] = (id, options = {}) => callBy(send, operations[id], options);
  const tokenOf: TestApp["tokenOf"] = ({ id, username, tenant }) =>
    signUserToken(services, { id, origin: "local", username, mfa: false, tenant, tokenVersion: 0 });
  const user: TestApp["user"] = async (username, namespace) => {
    const email = `${username}@example.org`;
    const { id } = await insertUser(
      services,
      services.db,
      { name: username, username, email, password: "" },
      PASSWORD_HASH,
    );
    const created: TestUser = {
      id,
      username,
      email,
      tenant: "",
      token: await tokenOf({ id, username, tenant: "" }),
      call(operation, options = {}) {
        const params = { tenant: this.tenant, ...options.params };
        return call(operation, { token: this.token, ...options, params });
      },
    };
    if (!namespace) return created;
    const { status, body } = await created.call("createNamespace", { body: { name: namespace } });
    expect(status).toBe(200);
    const { tenant_id: tenant } = body;
    return { ...created, tenant, token: await tokenOf({ id, username, tenant }) };
  };
  return {
    url,
    services,
    gateway,
    mails,
    issuerFailures,
    deliverMails: () => deliverMails(services, app.log),
    pass: (seconds) => {
      ahead += seconds * 1000;
    },
    stopClock: () => {
      stoppedAt = Math.floor(Date.now() / 1000) * 1000;
    },
    send,
    call,
    user,
    tokenOf,
    stop: async () => {
      await gateway.endLogins();
      await app.close();
      await services.heartbeats.flush();
      await database.close();
      await remove();
    },
  };
}

/** Sends a request. Returns the response unchecked. */
export async function sendTo(url: string, options: RequestInit): Promise<Answer> {
  const response = await fetch(url, options);
  const text = await response.text();
  const json = response.headers.get("content-type")?.includes("json");
  const body = json ? JSON.parse(text) : undefined;
  return { status: response.status, headers: response.headers, text, body };
}

/** Sends a request for an operation. The response must conform to the contract. */
export async function callBy(
  send: TestApp["send"],
  operation: Operation,
  options: CallOptions,
): Promise<Answer> {
  const answer = await send(operation.method, pathOf(operation, options), {
    headers: headersOf(options),
    ...(options.body !== undefined && { body: JSON.stringify(options.body) }),
  });
  expectContract(operation, answer);
  return answer;
}

export function pathOf(operation: Operation, { params = {}, query = {} }: CallOptions): string {
  const path = operation.path.replaceAll(/\{([^}]+)\}/g, (_, name: string) =>
    encodeURIComponent(params[name] ?? ""),
  );
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) search.set(name, String(value));
  return search.size > 0 ? `${path}?${search}` : path;
}

export function headersOf({ token, apiKey, body, headers }: CallOptions): Record<string, string> {
  return {
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
    ...(apiKey !== undefined && { "x-api-key": apiKey }),
    ...(body !== undefined && { "content-type": "application/json" }),
    ...headers,
  };
}

/** Expects that the contract describes the response: its status, its body and its headers. */
export function expectContract(operation: Operation, { status, body, text, headers }: Answer): void {
  const where = `${operation.id} answered ${status} ${text}`;
  if (status === operation.success.status) {
    if (isAcknowledged(operation)) {
      expect(acknowledgement.parse(body), where).toEqual(body);
    } else if (text === "") {
      expect(operation.success.body === undefined || operation.success.mayBeEmpty, where).toBe(true);
    } else if (operation.success.mediaType !== JSON_TYPE) {
      expect(headers.get("content-type"), where).toBe(`${operation.success.mediaType}; charset=utf-8`);
    } else {
      // The comparison is strict, because a response must contain no field that is not in the contract.
      expect(operation.success.body?.parse(body), where).toEqual(body);
    }
    if (operation.success.headers.includes("X-Total-Count")) {
      expect(headers.get("x-total-count"), where).toMatch(/^\d+$/);
    }
  } else {
    const errors = { ...commonErrors(operation), ...operation.errors, 503: CONNECTION_ERRORS[503] };
    expect(Object.keys(errors).map(Number), where).toContain(status);
    const names = Array.isArray(body) && body.every((name: unknown) => typeof name === "string");
    expect(names || typeof body?.message === "string", where).toBe(true);
    if (status === 404) expect(notFound.parse(body), where).toEqual(body);
  }
  expect(headers.get("x-request-id"), where).toMatch(/^[0-9a-f-]{36}$/);
}

/** Encodes the filter of a list as base64 of its JSON. */
export const encodeFilter = (items: unknown): string => Buffer.from(JSON.stringify(items)).toString("base64");

export const property = (name: string, operator: string, value: unknown) => ({
  type: "property",
  params: { name, operator, value },
});
export const operator = (name: string) => ({ type: "operator", params: { name } });

/** Returns the values of one field of a list's objects. */
export const valuesOf = (list: Body, field: string): Body => list.map((item: Body) => item[field]);

export const ED25519 = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
/** A public key for all login names and devices, as the body of `createPublicKey`. */
export const PUBLIC_KEY = {
  name: "laptop",
  username: ".*",
  filter: { hostname: ".*" },
  data: Buffer.from(ED25519).toString("base64"),
};
/** A firewall rule that denies every login. */
export const DENY_RULE = {
  action: "deny",
  active: true,
  priority: 1,
  source_ip: ".*",
  username: ".*",
  filter: { hostname: ".*" },
};

/** Returns the report of a device with a host name and without a MAC address. Each host name is a new device. */
export const reportOf = (tenant: string, hostname: string, more: object = {}) => ({
  info: { id: "", pretty_name: "", version: "", arch: "", platform: "" },
  hostname,
  public_key: `key of ${hostname}`,
  tenant_id: tenant,
  ...more,
});

/** Enrolls a device. A device with another MAC address is another device. */
export async function enroll(app: TestApp, tenant: string, mac: string, more: object = {}): Promise<Body> {
  const answer = await app.call("authDevice", {
    body: {
      info: {
        id: "debian",
        pretty_name: "Debian GNU/Linux 12",
        version: "v0.19.0",
        arch: "amd64",
        platform: "native",
      },
      identity: { mac },
      public_key: `-----BEGIN RSA PUBLIC KEY-----\n${mac}\n-----END RSA PUBLIC KEY-----\n`,
      tenant_id: tenant,
      ...more,
    },
  });
  expect(answer.status).toBe(200);
  return answer.body;
}

const deviceKey = generateKeyPairSync("rsa", { modulusLength: 2048 });

/** Enrolls a device like {@link enroll}. The report contains a proof of the private key. */
export async function enrollProven(
  app: TestApp,
  tenant: string,
  mac: string,
  more: object = {},
): Promise<Body> {
  const { challenge } = (await app.call("challengeDevice")).body;
  const text = Buffer.from(devices.proofText(tenant, challenge));
  return enroll(app, tenant, mac, {
    public_key: deviceKey.publicKey.export({ type: "pkcs1", format: "pem" }),
    proof: { challenge, signature: sign("sha256", text, deviceKey.privateKey).toString("base64") },
    ...more,
  });
}
