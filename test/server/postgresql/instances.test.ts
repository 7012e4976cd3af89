import { TOTP } from "otpauth";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openDatabase } from "../../../server/db/openDatabase.ts";
import { sealerOf } from "../../../server/secrets/sealer.ts";
import { DatabaseSigningKeys } from "../../../server/secrets/signingKeys.ts";
import { type Call, call } from "../../support/call.ts";
import { testFolder } from "../../support/folder.ts";
import { INSTANCE_SECRET, type Instances, startInstances } from "../../support/instances.ts";
import { postgresqlAddress } from "../../support/postgresql/database.ts";
import { callServerCommand } from "../../support/serverCommand.ts";
import type { TestService } from "../../support/service.ts";
import { expectExactCounts } from "../db/deviceCounts.ts";
import { expectFailure } from "../process/failure.ts";

const PASSWORD = "correct-horse";

let instances: Instances;
let here: TestService;
let there: TestService;
let elsewhere: TestService;
beforeAll(async () => {
  instances = await startInstances(postgresqlAddress() ?? "", 3, {
    GATEHOUSE_LOGINS_PER_ACCOUNT: String(LOGINS),
  });
  [here, there, elsewhere] = instances.services as [TestService, TestService, TestService];
  await here.setup({ username: "ana", password: PASSWORD });
});
afterAll(() => instances.stop());

/** Login rate limit per account and minute, over all instances. Only the test of this limit exceeds it. */
const LOGINS = 200;

/** Sends the same request to all instances concurrently. */
const everywhere = (request: string, more: Call = {}) =>
  Promise.all(instances.services.map((service) => call(service, request, more)));
const statuses = async (request: string, more: Call = {}) =>
  (await everywhere(request, more)).map(({ status }) => status);

const login = (service: TestService, username = "ana", password = PASSWORD) =>
  call(service, "POST /api/login", { body: { username, password } });

/** Creates a session of ana, who owns the namespace. */
async function session(service = here): Promise<{ token: string; tenant: string }> {
  const { status, body } = await login(service);
  expect(status).toBe(200);
  return body;
}

/** Creates a user. If a role is given, the user is a member of ana's namespace. */
async function newUser(username: string, role?: string): Promise<{ id: string; token: string }> {
  const { id } = await here.createUser({ username, password: PASSWORD });
  if (role !== undefined) {
    const { token, tenant } = await session();
    const body = { email: `${username}@example.com`, role };
    const invited = await call(here, `POST /api/namespaces/${tenant}/members`, { token, body });
    expect(invited.status).toBe(200);
  }
  const { status, body } = await login(there, username);
  expect(status).toBe(200);
  return { id, token: body.token };
}

const kidOf = (token: string): string =>
  JSON.parse(Buffer.from(token.split(".")[0] ?? "", "base64url").toString()).kid;

/** Loads the signing keys from the shared database, as an additional instance would. */
async function signingKeys() {
  const database = await openDatabase({ url: instances.databaseUrl, connections: 2 });
  const base = { db: database.client, sealer: sealerOf(INSTANCE_SECRET), now: () => new Date() };
  return { keys: await DatabaseSigningKeys.load(base), close: () => database.close() };
}

test("one of several instances that start together creates the tables of an empty database, and all use one key", async () => {
  const migrated = instances.services.flatMap((service) =>
    service.logs().filter((line) => line.msg === "database migrated"),
  );
  expect(migrated).toHaveLength(1);
  const sessions = await Promise.all(instances.services.map(session));
  expect(new Set(sessions.map(({ token }) => kidOf(token))).size).toBe(1);
});

test("applies one limit of logins to all instances together", async () => {
  const tries = Array.from({ length: LOGINS + 3 }, (_, n) => {
    const service = instances.services[n % 3] ?? here;
    // The test sends only the second step of a login (MFA), because this step computes no password hash and is fast.
    // The limit counts these requests by the token in the body, which is the same in all requests.
    const body = { token: "c2a1f0de-7a51-4f2e-9c0b-2f7d5b8e4a10", code: "000000" };
    return call(service, "POST /api/user/mfa/auth", { body });
  });
  const answers = await Promise.all(tries);
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(3);
});

test("accepts a login of one instance at all instances", async () => {
  for (const service of instances.services) {
    const { token } = await session(service);
    expect(await statuses("GET /api/devices", { token })).toEqual([200, 200, 200]);
  }
});

test("counts failed logins of all instances together, and locks the account everywhere", async () => {
  await newUser("locked");
  expect((await login(here, "locked", "wrong")).status).toBe(401);
  expect((await login(there, "locked", "wrong")).status).toBe(401);
  const third = await login(elsewhere, "locked", "wrong");
  expect(third.status).toBe(429);
  const ends = await Promise.all(instances.services.map((service) => login(service, "locked")));
  const end = third.headers.get("x-account-lockout");
  expect(ends.map(({ status, headers }) => [status, headers.get("x-account-lockout")])).toEqual(
    Array(3).fill([429, end]),
  );
});

test("allows no more concurrent guesses at all instances together than at one instance", async () => {
  await newUser("guessed");
  const guesses = Array.from({ length: 9 }, (_, n) =>
    login(instances.services[n % 3] as TestService, "guessed", "wrong"),
  );
  const refused = (await Promise.all(guesses)).filter(({ status }) => status === 401);
  expect(refused.length).toBeLessThanOrEqual(2);
  expect((await login(here, "guessed")).status).toBe(429);
});

test("accepts the second factor of a login at another instance, and its code only once", async () => {
  const { token } = await newUser("factor");
  const address = { recovery_email: "factor@recovery.example" };
  expect((await call(here, "PATCH /api/users", { token, body: address })).status).toBe(200);
  const { body: mfa } = await call(there, "GET /api/user/mfa/generate", { token });
  const code = () => new TOTP({ secret: mfa.secret }).generate();
  const { secret, recovery_codes } = mfa;
  const enabled = await call(elsewhere, "PUT /api/user/mfa/enable", {
    token,
    body: { code: code(), secret, recovery_codes },
  });
  expect(enabled.status).toBe(200);

  const challenge = async (service: TestService) =>
    (await login(service, "factor")).headers.get("x-mfa-token") ?? "";
  const finish = (service: TestService, waiting: string, given: string) =>
    call(service, "POST /api/user/mfa/auth", { body: { token: waiting, code: given } });
  const waiting = await Promise.all(instances.services.map(challenge));
  const given = code();
  // Each token is sent to an instance that did not issue the token.
  const [first = "", second = "", third = ""] = waiting;
  const answers = await Promise.all([
    finish(there, first, given),
    finish(elsewhere, second, given),
    finish(here, third, given),
  ]);
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 401, 401]);
  const session = answers.find(({ status }) => status === 200)?.body;
  expect(await statuses("GET /api/auth/user", { token: session.token })).toEqual([200, 200, 200]);
  expect((await finish(there, await challenge(here), given)).status).toBe(401);
});

test("rejects a revoked API key everywhere immediately", async () => {
  const { token } = await session();
  const body = { name: "deploy", expires_at: 30 };
  const { body: key } = await call(here, "POST /api/namespaces/api-key", { token, body });
  const apiKey = key.id;
  expect(await statuses("GET /api/devices", { apiKey })).toEqual([200, 200, 200]);
  expect((await call(there, "DELETE /api/namespaces/api-key/deploy", { token })).status).toBe(200);
  expect(await statuses("GET /api/devices", { apiKey })).toEqual([401, 401, 401]);
});

test("applies a demotion and a removal everywhere immediately", async () => {
  const { token, tenant } = await session();
  const member = await newUser("member", "administrator");
  const trail = `GET /api/namespaces/${tenant}/audit`;
  expect(await statuses(trail, { token: member.token })).toEqual([200, 200, 200]);
  const path = `/api/namespaces/${tenant}/members/${member.id}`;
  const demoted = await call(there, `PATCH ${path}`, { token, body: { role: "operator" } });
  expect(demoted.status).toBe(200);
  expect(await statuses(trail, { token: member.token })).toEqual([403, 403, 403]);
  expect((await call(elsewhere, `DELETE ${path}`, { token })).status).toBe(200);
  expect(await statuses("GET /api/devices", { token: member.token })).toEqual([401, 401, 401]);
});

test("a new password invalidates the user's other tokens everywhere immediately", async () => {
  const { token } = await newUser("changing");
  const other = (await login(here, "changing")).body.token;
  const body = { password: "another-horse", current_password: PASSWORD };
  expect((await call(there, "PATCH /api/users", { token, body })).status).toBe(200);
  expect(await statuses("GET /api/auth/user", { token: other })).toEqual([401, 401, 401]);
  expect(await statuses("GET /api/auth/user", { token })).toEqual([200, 200, 200]);
  expect((await login(here, "changing")).status).toBe(401);
  expect((await login(elsewhere, "changing", "another-horse")).status).toBe(200);
});

test("requests with one idempotency key create one object, at any instance", async () => {
  const { token, tenant } = await session();
  const headers = { "idempotency-key": "one-of-all" };
  const filter = { hostname: ".*" };
  const rule = { action: "deny", active: true, priority: 7, source_ip: ".*", username: ".*", filter };
  const creations = await Promise.all(
    [1, 2, 3].map(() => everywhere("POST /api/firewall/rules", { token, body: rule, headers })),
  );
  expect(creations.flat().map(({ status }) => status)).toEqual(Array(9).fill(200));
  expect(new Set(creations.flat().map(({ body }) => body.id)).size).toBe(1);
  expect((await call(here, "GET /api/firewall/rules", { token })).body).toHaveLength(1);
  const trail = await call(there, `GET /api/namespaces/${tenant}/audit?kind=firewallRule`, { token });
  expect(trail.body).toHaveLength(1);
});

const reportOf = (tenant: string, mac: string) => ({
  info: { id: "debian", pretty_name: "Debian", version: "v0.19.0", arch: "amd64", platform: "native" },
  identity: { mac },
  public_key: "-----BEGIN RSA PUBLIC KEY-----\nAAAA\n-----END RSA PUBLIC KEY-----\n",
  tenant_id: tenant,
});

test("a device that enrolls at one instance exists at the other instances, and is online there", async () => {
  const { token, tenant } = await session();
  const device = reportOf(tenant, "00:00:00:00:00:01");
  const enrolled = await call(here, "POST /api/devices/auth", { body: device });
  expect(enrolled.status).toBe(200);
  const seen = await everywhere(`GET /api/devices/${enrolled.body.uid}`, { token });
  expect(seen.map(({ body }) => [body.uid, body.online])).toEqual(Array(3).fill([enrolled.body.uid, true]));
});

test("counts devices exactly at all instances, while devices enroll and are deleted", async () => {
  const { token, tenant } = await session();
  const { body: created } = await call(here, "POST /api/namespaces", { token, body: { name: "counted" } });
  const { body: inside } = await call(there, `GET /api/auth/token/${created.tenant_id}`, { token });
  const own = { token: inside.token };
  const DEVICES = 24;
  const at = (n: number) => instances.services[n % 3] as TestService;
  await Promise.all(
    Array.from({ length: DEVICES }, async (_, n) => {
      const report = reportOf(created.tenant_id, `00:00:00:00:01:${n}`);
      const { status, body } = await call(at(n), "POST /api/devices/auth", { body: report });
      expect(status).toBe(200);
      if (n % 4 === 0) return;
      expect((await call(at(n + 1), `PATCH /api/devices/${body.uid}/accept`, own)).status).toBe(200);
      if (n % 4 > 1) return;
      expect((await call(at(n + 2), `DELETE /api/devices/${body.uid}`, own)).status).toBe(200);
    }),
  );
  const listed = await everywhere("GET /api/devices?per_page=1", own);
  const totals = listed.map(({ headers }) => headers.get("x-total-count"));
  expect(totals).toEqual(Array(3).fill(String((3 * DEVICES) / 4)));
  const counts = await everywhere(`GET /api/namespaces/${created.tenant_id}`, own);
  expect(counts.map(({ body }) => body.device_count)).toEqual(Array(3).fill(DEVICES / 2));
  const database = await openDatabase({ url: instances.databaseUrl, connections: 1 });
  await expectExactCounts(database.client).finally(() => database.close());
  expect((await call(there, `DELETE /api/namespaces/${created.tenant_id}`, own)).status).toBe(200);
  expect(await statuses("GET /api/devices", { token: (await session()).token })).toEqual([200, 200, 200]);
  expect(tenant).not.toBe(created.tenant_id);
});

// Each instance reads new signing keys every five seconds. process/keys.test.ts tests this with instances in one
// process.
test("a new signing key signs everywhere after a while, and tokens of the old key remain valid", {
  tags: ["long"],
}, async () => {
  const old = await session();
  const { keys, close } = await signingKeys();
  const kid = await keys.rotate({ revoke: false });
  await close();
  for (const service of instances.services) {
    await expect.poll(async () => kidOf((await session(service)).token), { timeout: 30_000 }).toBe(kid);
  }
  const { token } = await session();
  for (const given of [old.token, token]) {
    expect(await statuses("GET /api/devices", { token: given })).toEqual([200, 200, 200]);
  }
});

test("revoked signing keys invalidate every token everywhere after a while", { tags: ["long"] }, async () => {
  const { token } = await session();
  const { keys, close } = await signingKeys();
  await keys.rotate({ revoke: true });
  await close();
  await expect
    .poll(() => statuses("GET /api/devices", { token }), { timeout: 30_000 })
    .toEqual([401, 401, 401]);
  const fresh = await session(there);
  expect(await statuses("GET /api/devices", { token: fresh.token })).toEqual([200, 200, 200]);
});

test.each([
  ["another secret", { GATEHOUSE_SECRET: "another secret, long enough to be taken for one" }],
  ["its own secret", {}],
])("an instance with %s does not start, and reports the reason", async (_, secret) => {
  const dataDir = testFolder();
  const env = { GATEHOUSE_DATABASE_URL: instances.databaseUrl, ...secret };
  const refused = await callServerCommand(["serve", "--data-dir", dataDir, "--port", "0"], { env });
  expectFailure(
    refused,
    /^gatehouse-server: A secret in the database was sealed with a different instance secret\. [^\n]*GATEHOUSE_SECRET[^\n]*\n$/,
  );
  expect(refused.stderr).not.toContain(INSTANCE_SECRET);
  expect(await statuses("GET /readyz")).toEqual([200, 200, 200]);
});

test("a killed instance does not affect the other instances", async () => {
  const { token } = await session(there);
  await elsewhere.kill();
  for (const service of [here, there]) {
    expect((await call(service, "GET /api/devices", { token })).status).toBe(200);
    expect((await login(service)).status).toBe(200);
  }
});
