import { generateKeyPairSync } from "node:crypto";
import { type Client, createClient, passwordCredential } from "../../sdk/index.ts";
import { isSparse } from "../projects.ts";
import { keyData } from "./policy.ts";
import { type ServiceOptions, startService, type TestService } from "./service.ts";
import { startSparseService } from "./sparseService.ts";

/** A test service with its first user, further users, and simulated devices. */
export interface Fleet {
  readonly service: TestService;
  readonly client: Client;
  readonly tenant: string;
  /**
   * Environment variables for a program that acts as the first user. If TEST_SERVICE is `sparse`, the program uses the
   * minimal service of sparseService.ts.
   */
  readonly env: Record<string, string>;
  /** Enrolls a device and accepts it. By default, the device is in the user's own namespace. */
  enroll(hostname: string, mac?: string, tenant?: string): Promise<string>;
  /** Enrolls a pending device. */
  enrollPending(hostname: string): Promise<string>;
  /** Enrolls many pending devices. `report` selects one of these devices by its number. */
  enrollMany(count: number): Promise<void>;
  /** Sends a report of one device that `enrollMany` enrolled. Agents send such reports regularly. */
  report(index: number): Promise<void>;
  /**
   * Deletes the keys, rules, API keys and tags in the user's own namespace, except the given tags. Takes less time than
   * an engine run that deletes them.
   */
  clear(...keptTags: readonly string[]): Promise<void>;
  stop(): Promise<void>;
}

/** Creates the public key of a device. */
export const newAgentKey = (): string =>
  generateKeyPairSync("rsa", {
    modulusLength: 2048,
    publicKeyEncoding: { type: "pkcs1", format: "pem" },
    privateKeyEncoding: { type: "pkcs1", format: "pem" },
  }).publicKey;

// All devices use the same key. The service distinguishes devices by MAC address, and the generation of keys would take
// most of a test's time.
const AGENT_KEY = newAgentKey();

/** Settings that disable the rate limits. Tests send more logins and device reports in a minute than real users. */
const UNLIMITED = {
  GATEHOUSE_LOGINS_PER_ADDRESS: "0",
  GATEHOUSE_LOGINS_PER_ACCOUNT: "0",
  GATEHOUSE_REPORTS_PER_ADDRESS: "0",
};

const hex = (byte: number) => byte.toString(16).padStart(2, "0");

/** Enrolls a device, or sends its report, like an agent. The device is pending at first. */
export function agentCall(
  client: Client,
  hostname: string,
  mac: string,
  tenantId: string,
  version = "v0.19.0",
  publicKey = AGENT_KEY,
) {
  const info = { id: "debian", prettyName: "Debian", version, arch: "amd64", platform: "native" };
  return client.authDevice({ body: { info, hostname, identity: { mac }, publicKey, tenantId } });
}

/** Creates a public key outside any program, by default for every login on every device. Returns its fingerprint. */
export async function createKey(
  client: Client,
  name: string,
  username = ".*",
  filter: { hostname: string } | { tags: string[] } = { hostname: ".*" },
): Promise<string> {
  const data = Buffer.from(keyData(name)).toString("base64");
  return (await client.createPublicKey({ body: { name, data, username, filter } })).fingerprint;
}

/** Returns the fingerprint of the public key with this name. @throws Error if the namespace has no such key */
export async function fingerprintOf(client: Client, name: string): Promise<string> {
  return (await keyNamed(client, name)).fingerprint;
}

async function keyNamed(client: Client, name: string) {
  const key = (await client.getPublicKeys({ query: { perPage: 100 } })).find((one) => one.name === name);
  if (!key) throw new Error(`the namespace has no public key ${name}`);
  return key;
}

/** Fields of a public key that a test changes outside any program. */
interface KeyChange {
  readonly name?: string;
  readonly username?: string;
  readonly filter?: { readonly hostname: string } | { readonly tags: readonly string[] };
  readonly expiresAt?: string | null;
}

/** Changes the public key with this name outside any program. Its other fields stay as they are. */
export async function changeKey(client: Client, name: string, change: KeyChange): Promise<void> {
  const { fingerprint, username, filter } = await keyNamed(client, name);
  const body = { name, username, filter, ...change };
  await client.updatePublicKey({ params: { fingerprint }, body: body as never });
}

/** Deletes the public key with this name outside any program. */
export async function deleteKey(client: Client, name: string): Promise<void> {
  await client.deletePublicKey({ params: { fingerprint: await fingerprintOf(client, name) } });
}

/** Returns the id of a member. @throws Error if the namespace has no member with this address */
export async function memberId(
  { client, tenant }: Pick<Fleet, "client" | "tenant">,
  email: string,
): Promise<string> {
  const { members } = await client.getNamespace({ params: { tenant } });
  const member = members.find((one) => one.email === email);
  if (!member) throw new Error(`the namespace has no member ${email}`);
  return member.id;
}

async function clear(client: Client, keptTags: readonly string[]): Promise<void> {
  const query = { perPage: 100 };
  for (const { fingerprint } of await client.getPublicKeys({ query })) {
    await client.deletePublicKey({ params: { fingerprint } });
  }
  for (const { id } of await client.getFirewallRules({ query })) {
    await client.deleteFirewallRule({ params: { id } });
  }
  for (const { name } of await client.listApiKeys({ query })) {
    await client.deleteApiKey({ params: { key: name } });
  }
  for (const { uid, tags } of await client.getDevices({ query })) {
    for (const tag of tags) {
      if (!keptTags.includes(tag)) await client.deleteDeviceTag({ params: { uid, tag } });
    }
  }
}

/** Starts a service, sets up `admin`, and creates the given users. */
export async function startFleet(
  users: readonly string[] = [],
  options: ServiceOptions = {},
): Promise<Fleet> {
  const service = await startService({ ...options, env: { ...UNLIMITED, ...options.env } });
  const login = await service.setup();
  for (const username of users) await service.createUser({ username, password: "correct-horse" });
  const client = createClient({ url: service.url, credential: passwordCredential(login) });
  const { tenant } = await client.identity();
  if (!tenant) throw new Error("the first user has no namespace");
  const sparse = isSparse ? await startSparseService(service.url, { emptyErrors: true }) : undefined;
  let enrolled = 0;
  const nextMac = () => {
    enrolled += 1;
    return `02:00:00:00:00:${hex(enrolled)}`;
  };
  const auth = (hostname: string, mac: string, tenantId: string) =>
    agentCall(client, hostname, mac, tenantId);
  const report = async (index: number) => {
    const mac = `06:00:00:00:${hex(index >> 8)}:${hex(index & 255)}`;
    await auth(`many-${index}`, mac, tenant);
  };
  return {
    service,
    client,
    tenant,
    report,
    async enrollMany(count) {
      let next = 0;
      const worker = async () => {
        while (next < count) await report(next++);
      };
      await Promise.all(Array.from({ length: 16 }, worker));
    },
    env: {
      GATEHOUSE_URL: sparse?.url ?? service.url,
      GATEHOUSE_USERNAME: login.username,
      GATEHOUSE_PASSWORD: login.password,
      GATEHOUSE_TENANT: tenant,
      // Limits retries to two seconds. In these tests no retry succeeds, and with the default limit each failing
      // request would take a minute.
      GATEHOUSE_RETRY_TIMEOUT: "2",
    },
    async enrollPending(hostname) {
      return (await auth(hostname, nextMac(), tenant)).uid;
    },
    async enroll(hostname, mac, tenantId = tenant) {
      const { uid } = await auth(hostname, mac ?? nextMac(), tenantId);
      await client.forTenant(tenantId).acceptDevice({ params: { uid } });
      return uid;
    },
    clear: (...keptTags) => clear(client, keptTags),
    async stop() {
      await client.close();
      await sparse?.stop();
      await service.stop();
    },
  };
}
