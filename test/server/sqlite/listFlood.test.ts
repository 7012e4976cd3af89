import { rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openDatabase } from "../../../server/db/openDatabase.ts";
import { call } from "../../support/call.ts";
import { makeDataDir } from "../../support/dataFolder.ts";
import { startService, type TestService } from "../../support/service.ts";
import { encodeFilter, operator, property } from "../http/testApp.ts";

const CONNECTIONS = 16;
const DEVICES = 45_000;
/** The maximum number of searches in a device filter. No device matches any of the searches. */
const SEARCHES = Array.from({ length: 20 }, (_, n) =>
  property("info.pretty_name", "contains", `no system ${n}`),
);
const COSTLY = `GET /api/devices?filter=${encodeURIComponent(encodeFilter([...SEARCHES, operator("or")]))}`;
const CHEAP = "GET /api/sshkeys/public-keys";

interface Owner {
  readonly username: string;
  readonly token: string;
  readonly tenant: string;
}

const PASSWORD = "correct-horse";
let dataDir: string;
let service: TestService;
let metrics: string;
let large: Owner;
let small: Owner;

/** Creates a user and a namespace with the user's name. */
async function owner(username: string): Promise<Owner> {
  await service.createUser({ username, password: PASSWORD });
  const login = async () =>
    (await call(service, "POST /api/login", { body: { username, password: PASSWORD } })).body;
  const { token } = await login();
  expect((await call(service, "POST /api/namespaces", { token, body: { name: username } })).status).toBe(200);
  const { tenant, token: ofNamespace } = await login();
  return { username, tenant, token: ofNamespace };
}

/** Fills the namespace with devices in one statement. The service must be stopped during the statement. */
async function fill(tenant: string): Promise<void> {
  const { client, close } = await openDatabase({ file: join(dataDir, "gatehouse.db") });
  const now = new Date().toISOString();
  await client.$executeRaw`
    WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < ${DEVICES})
    INSERT INTO "Device" ("uid", "tenantId", "mac", "name", "publicKey", "infoId", "infoPrettyName", "infoVersion",
      "infoArch", "infoPlatform", "status", "statusUpdatedAt", "createdAt", "lastSeen")
    SELECT printf('%064d', n), ${tenant}, 'mac-' || n, 'host-' || n, 'key', 'debian', 'Debian GNU/Linux 12', 'v0.19.0',
      'amd64', 'native', 'accepted', ${now}, ${now}, ${now} FROM numbers`;
  await close();
}

beforeAll(async () => {
  dataDir = await makeDataDir();
  service = await startService({ dataDir });
  large = await owner("large");
  small = await owner("small");
  await service.stop();
  await fill(large.tenant);
  service = await startService({
    dataDir,
    env: {
      GATEHOUSE_METRICS_ADDRESS: "127.0.0.1:0",
      // Half of the default list backlog (in milliseconds). Even on a fast machine, the concurrent list requests then
      // exceed it.
      GATEHOUSE_LIST_BACKLOG: "250",
    },
  });
  const line = service.logs().find(({ msg }) => msg.startsWith("metrics open at "));
  metrics = `${line?.msg.slice("metrics open at ".length)}/metrics`;
});
afterAll(async () => {
  await service.stop();
  await rm(dataDir, { recursive: true, force: true });
});

/** Requests a list repeatedly on several connections. */
function flood(request: string, { token }: Owner) {
  const answers: { readonly status: number; readonly retryAfter: string | null }[] = [];
  let ended = false;
  const caller = async () => {
    while (!ended) {
      const { status, headers } = await call(service, request, { token });
      answers.push({ status, retryAfter: headers.get("retry-after") });
    }
  };
  const callers = Array.from({ length: CONNECTIONS }, caller);
  return {
    answers,
    count: (wanted: number) => answers.filter(({ status }) => status === wanted).length,
    async stop() {
      ended = true;
      await Promise.all(callers);
    },
  };
}

/** Sends requests for operations other than lists, and expects that each request succeeds. */
async function everythingElse({ username, token, tenant }: Owner, name: string): Promise<void> {
  const info = { id: "debian", pretty_name: "Debian", version: "v0.19.0", arch: "amd64", platform: "native" };
  const report = { info, identity: { mac: name }, public_key: "a key", tenant_id: tenant };
  const statuses = {
    login: call(service, "POST /api/login", { body: { username, password: PASSWORD } }),
    write: call(service, "POST /api/namespaces/api-key", { token, body: { name, expires_at: 30 } }),
    object: call(service, `GET /api/namespaces/${tenant}`, { token }),
    report: call(service, "POST /api/devices/auth", { body: report }),
    alive: call(service, "GET /healthz"),
    ready: call(service, "GET /readyz"),
    metrics: fetch(metrics),
  };
  for (const [what, answer] of Object.entries(statuses)) {
    expect([what, (await answer).status]).toEqual([what, 200]);
  }
}

test("rejects some lists of a client that floods the service with expensive lists, and serves all other requests", async () => {
  const { answers, count, stop } = flood(COSTLY, large);
  try {
    await expect.poll(() => count(503)).toBeGreaterThan(0);
    const before = count(200);
    for (let round = 0; round < 10; round += 1) {
      expect((await call(service, CHEAP, { token: small.token })).status).toBe(200);
    }
    // The service takes the list requests of both users in turns. Otherwise, each of these requests would wait for one
    // list request on each connection of the other user.
    expect(count(200) - before).toBeLessThan((10 * CONNECTIONS) / 4);
    await everythingElse(small, "of-small");
    await everythingElse(large, "of-large");
  } finally {
    await stop();
  }
  expect(count(200) + count(503)).toBe(answers.length);
  expect(answers.every(({ status, retryAfter }) => retryAfter === (status === 503 ? "1" : null))).toBe(true);
  const logged = service.logs().filter(({ msg }) => msg.startsWith("refusing lists"));
  expect(logged).toEqual([expect.objectContaining({ owner: large.tenant })]);
  const counters = await (await fetch(metrics)).text();
  expect(counters).toContain(`gatehouse_refused_lists_total ${count(503)}`);
  expect(counters.match(/gatehouse_requests_total\{.*status="503"\}/g)).toEqual([
    'gatehouse_requests_total{operation="getDevices",status="503"}',
  ]);
});

test("serves all cheap lists on the same number of connections", { tags: ["long"] }, async () => {
  const rejectedOf = async () => {
    const { answers, count, stop } = flood(CHEAP, small);
    await expect.poll(() => answers.length).toBeGreaterThan(500);
    await stop();
    return answers.length - count(200);
  };
  // While other processes use the processors, a cheap list may take as long as an expensive one. Such a flood is
  // repeated.
  await expect.poll(rejectedOf, { timeout: 50_000 }).toBe(0);
});
