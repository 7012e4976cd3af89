import { randomBytes } from "node:crypto";
import { createClient, passwordCredential } from "../../sdk/index.ts";
import { sshKeyLine } from "../provider/support/programs.ts";
import { type Call, call } from "../support/call.ts";
import type { TestService } from "../support/service.ts";

/**
 * Lists of values of objects that exist on the service. The keys are the names of the lists. `fuzz.toml` defines which
 * request parameters take their values from which list.
 */
type Dictionaries = Readonly<Record<string, readonly string[]>>;

/** The credentials and values of the service under test. */
export interface FuzzedService {
  readonly ownerToken: string;
  readonly administratorKey: string;
  readonly dictionaries: Dictionaries;
}

/**
 * Sends JSON and returns the JSON of the response.
 * @throws Error with the service's message, if the status is not 2xx
 */
async function post<T>(
  at: Pick<TestService, "url">,
  path: string,
  body: unknown,
  more: Call = {},
): Promise<T> {
  const answer = await call(at, `POST ${path}`, { body, ...more });
  if (answer.status >= 300) throw new Error(`${path} answered ${answer.status}: ${answer.body?.message}`);
  return answer.body;
}

/**
 * The numbers of the objects of each kind. The fuzzer deletes objects, so the service starts with enough objects that
 * some remain.
 */
const numbers = Array.from({ length: 24 }, (_, index) => index);
const TAGS = ["production", "staging", "edge", "laboratory"];
const tagOf = (number: number) => TAGS[number % TAGS.length] ?? "";
const filterOf = (number: number) =>
  number % 2 === 0 ? { tags: [tagOf(number / 2)] } : { hostname: `^device-${number}$` };

/** The token of the service's internal listener. */
export const INTERNAL_TOKEN = "the-internal-token-of-the-fuzzer-0";

/**
 * Starts a session as an SSH entry does, and adds a recording to the session's first channel (seat 0). Returns the uid
 * of the session.
 */
async function beginSession(service: TestService, deviceUid: string): Promise<string> {
  const line = service.logs().find(({ msg }) => msg === "listening for internal operations");
  if (line === undefined) throw new Error("the service has no listener for internal operations");
  const send = (path: string, body: object) =>
    post({ url: String(line.address) }, path, body, { headers: { "X-Internal-Token": INTERNAL_TOKEN } });
  const uid = randomBytes(32).toString("hex");
  const login = { device_uid: deviceUid, username: "root", ip_address: "198.51.100.4" };
  await send("/internal/sessions", { uid, ...login });
  const record = { uid, seat: 0, message: "$ ", width: 80, height: 24 };
  await send(`/internal/sessions/${uid}/records/0`, record);
  return uid;
}

/**
 * The number of members in the owner's namespace. It is small, because each new user requires a process and a password
 * hash.
 */
const MEMBERS = 4;

async function inTurn<T>(create: (number: number) => Promise<T>, count = numbers.length): Promise<T[]> {
  const created: T[] = [];
  for (const number of numbers.slice(0, count)) created.push(await create(number));
  return created;
}

/** Sets up a service with an owner, and with objects of every kind in the owner's namespace. */
export async function prepareService(service: TestService): Promise<FuzzedService> {
  const login = await service.setup();
  const client = createClient({ url: service.url, credential: passwordCredential(login) });
  try {
    const { tenant = "" } = await client.identity();
    const { token } = await post<{ token: string }>(service, "/api/login", login);
    // Without a subscription, a namespace can have at most three devices.
    await client.createCustomer();
    await client.attachPaymentMethod({ body: { id: "pm_visa_4242_203010_a1" } });
    await client.createSubscription();
    const administrator = { name: "fuzz", expires_at: -1, role: "administrator" };
    const key = await post<{ id: string }>(service, "/api/namespaces/api-key", administrator, { token });
    const report = async (hostname: string, platform: string, number: number) => {
      const info = { id: "debian", pretty_name: "Debian", version: "v0.19.0", arch: "amd64", platform };
      const identity = { mac: `${platform}:${number}` };
      const body = { info, hostname, identity, public_key: `agent ${hostname}`, tenant_id: tenant };
      return (await post<{ uid: string }>(service, "/api/devices/auth", body)).uid;
    };
    const accepted = async (hostname: string, platform: string, number: number) => {
      const uid = await report(hostname, platform, number);
      await client.acceptDevice({ params: { uid } });
      await client.updateDeviceTags({ params: { uid }, body: { tags: [tagOf(number)] } });
      return uid;
    };
    const device = await inTurn(async (number) =>
      number % 4 === 3
        ? report(`pending-${number}`, "native", number)
        : accepted(`device-${number}`, "native", number),
    );
    const container = await inTurn((number) => accepted(`container-${number}`, "connector", number));
    // The fuzzer deletes devices, and the service deletes a device's sessions together with the device. The sessions
    // therefore belong to a separate device, which is not in the list `device`.
    const host = await accepted("host-of-sessions", "native", numbers.length);
    await client.setSessionRecord({ params: { tenant }, body: { sessionRecord: true } });
    const session = await inTurn(() => beginSession(service, host));
    // A device has at most ten tunnels, so the tunnels are spread over several devices.
    const tunnel = await inTurn(async (number) => {
      const params = { uid: device[number % 4] ?? "" };
      return (await client.createTunnel({ params, body: { host: "127.0.0.1", port: 80 + number, ttl: -1 } }))
        .address;
    });
    const publicKey = await inTurn(async (number) => {
      const data = Buffer.from(sshKeyLine()).toString("base64");
      const body = { data, name: `key ${number}`, username: ".*", filter: filterOf(number) };
      return (await client.createPublicKey({ body })).fingerprint;
    });
    const rule = await inTurn(async (number) => {
      const matches = { sourceIp: ".*", username: ".*", filter: filterOf(number) };
      const body = { action: "allow", active: true, priority: number, ...matches } as const;
      return (await client.createFirewallRule({ body })).id;
    });
    const apiKey = await inTurn(async (number) => {
      const name = `ci-${number}`;
      await client.createApiKey({ body: { name, expiresAt: 30, role: "observer" } });
      return name;
    });
    const workload = await inTurn(async (number) => {
      const rules = { issuer: "https://id.example.org", audience: "gate", claims: { sub: `job-${number}` } };
      const body = { name: `workload-${number}`, role: "observer", ...rules } as const;
      return (await client.createTrustedWorkload({ body })).id;
    });
    const member = await inTurn(async (number) => {
      const username = `member-${number}`;
      const { id } = await service.createUser({ username, password: "correct-horse" });
      await client.inviteMember({
        params: { tenant },
        body: { email: `${username}@example.com`, role: "observer" },
      });
      return id;
    }, MEMBERS);
    const sshKey = numbers.map(() => Buffer.from(sshKeyLine()).toString("base64"));
    const lists = { device, tunnel, container, publicKey, rule, apiKey, workload, member, session, sshKey };
    return {
      ownerToken: token,
      administratorKey: key.id,
      dictionaries: { ...lists, tag: TAGS, tenant: [tenant], seat: ["0"] },
    };
  } finally {
    await client.close();
  }
}
