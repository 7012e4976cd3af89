import * as OTPAuth from "otpauth";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import {
  apiKeyCredential,
  type Client,
  type Credential,
  createClient,
  LockoutError,
  NotFoundError,
  PermissionError,
  passwordCredential,
  tokenCredential,
  ValidationError,
  where,
} from "../../sdk/index.ts";
import { type Fleet, startFleet } from "../support/fleet.ts";

let fleet: Fleet;

beforeAll(async () => {
  fleet = await startFleet(["mia", "otto"]);
});
afterAll(() => fleet.stop());

function connect(credential: Credential): Client {
  const client = createClient({ url: fleet.service.url, credential });
  onTestFinished(() => client.close());
  return client;
}

it("iterates a list of several pages in a stable order", async () => {
  for (let index = 0; index < 25; index += 1) await fleet.enroll(`node-${index}`);
  const names: string[] = [];
  for await (const device of fleet.client.iterate("getDevices", { query: { perPage: 10 } })) {
    names.push(device.name);
  }
  expect(names).toHaveLength(25);
  expect(names).toEqual([...names].sort());
  const some = await fleet.client.getDevices({
    query: { filter: where("name").contains("NODE-2"), perPage: 100 },
  });
  expect(some.map((device) => device.name).sort()).toEqual([
    "node-2",
    "node-20",
    "node-21",
    "node-22",
    "node-23",
    "node-24",
  ]);
});

it("returns the session token for its namespace, and rejects the call with an API key", async () => {
  const { tenantId } = await fleet.client.createNamespace({ body: { name: "elsewhere" } });
  const token = await fleet.client.forTenant(tenantId).sessionToken();
  const other = connect(tokenCredential(token));
  expect(await other.identity()).toMatchObject({ kind: "token", tenant: tenantId });
  expect(await other.getTags()).toEqual([]);
  const { id } = await fleet.client.createApiKey({ body: { name: "no-session", expiresAt: 30 } });
  await expect(connect(apiKeyCredential(id)).sessionToken()).rejects.toThrow("An API key has no session");
});

it("creates one object if a creation is repeated with its idempotency key", async () => {
  const { client } = fleet;
  const body = {
    action: "deny",
    active: true,
    filter: { hostname: "^gate" },
    priority: 3,
    sourceIp: "^203\\.",
    username: ".*",
  } as const;
  const create = (idempotencyKey: string) => client.createFirewallRule({ body }, { idempotencyKey });
  const rule = await create("state-of-rule-1");
  expect(rule).toMatchObject(body);
  expect(await create("state-of-rule-1")).toEqual(rule);
  const other = await create("state-of-rule-2");
  expect((await client.getFirewallRules()).map(({ id }) => id)).toEqual([rule.id, other.id]);
});

it("removes a tag from a rule's filter with a DELETE request that has a body", async () => {
  const uid = await fleet.enroll("tagged");
  await fleet.client.updateDeviceTags({ params: { uid }, body: { tags: ["edge", "core"] } });
  const filter = { tags: ["edge", "core"] };
  const { id } = await fleet.client.createFirewallRule({
    body: { action: "allow", active: true, filter, priority: 1, sourceIp: ".*", username: ".*" },
  });
  await fleet.client.removeFirewallRuleTag({ params: { id }, body: { tag: "edge" } });
  expect((await fleet.client.getFirewallRule({ params: { id } })).filter).toEqual({ tags: ["core"] });
});

it("manages a namespace with an API key until the key is revoked", async () => {
  const { id: key } = await fleet.client.createApiKey({ body: { name: "pipeline", expiresAt: 30 } });
  const client = connect(apiKeyCredential(key));
  expect(await client.identity()).toMatchObject({ kind: "apiKey", tenant: fleet.tenant });
  await client.editNamespace({
    params: { tenant: fleet.tenant },
    body: { settings: { sessionRecord: true } },
  });
  await expect(client.createNamespace({ body: { name: "mine" } })).rejects.toThrow(PermissionError);
  await fleet.client.deleteApiKey({ params: { key: "pipeline" } });
  await expect(client.getTags()).rejects.toMatchObject({ status: 401, operation: "getTags" });
});

it("logs in a user with MFA, and uses another namespace without changing the user's preferred one", async () => {
  const login = { username: "mia", password: "correct-horse" };
  const plain = connect(passwordCredential(login));
  const { tenantId: home } = await plain.createNamespace({ body: { name: "mias" } });
  const { tenantId: other } = await plain.createNamespace({ body: { name: "mias-other" } });
  const { token } = await plain.getNamespaceToken({ params: { tenant: home } });
  const session = connect(tokenCredential(token));
  await session.updateUser({ body: { recoveryEmail: "mia@elsewhere.example" } });
  const { secret, recoveryCodes } = await session.generateMfa();
  const code = new OTPAuth.TOTP({ secret }).generate();
  await session.enableMfa({ body: { code, secret, recoveryCodes } });

  const client = connect(passwordCredential({ ...login, totpSecret: secret }));
  expect((await client.getUserInfo()).mfa).toBe(true);
  const elsewhere = client.forTenant(other);
  await elsewhere.editNamespace({ params: { tenant: other }, body: { settings: { sessionRecord: false } } });
  expect((await client.getUserInfo()).tenant).toBe(home);
  const anonymous = createClient({ url: fleet.service.url });
  onTestFinished(() => anonymous.close());
  await expect(anonymous.login({ body: login })).rejects.toMatchObject({
    status: 401,
    mfaToken: expect.stringMatching(/^[0-9a-f-]{36}$/),
  });
});

it("throws different error classes, and keeps the service's message", async () => {
  const missing = "0".repeat(64);
  await expect(fleet.client.getDevice({ params: { uid: missing } })).rejects.toThrow(NotFoundError);
  const refused = fleet.client.createNamespace({ body: { name: "not.a.label" } });
  await expect(refused).rejects.toThrow(ValidationError);
  await expect(refused).rejects.toThrow(/name must be one host-name label/);
  await expect(refused).rejects.toMatchObject({ requestId: expect.stringMatching(/^[0-9a-f-]{36}$/) });
});

it("reports the end of the lockout after three failed logins", async () => {
  const attempt = async (password: string) => {
    const client = createClient({ url: fleet.service.url });
    try {
      return await client.login({ body: { username: "otto", password } });
    } finally {
      await client.close();
    }
  };
  await expect(attempt("wrong-1")).rejects.toMatchObject({ status: 401 });
  await expect(attempt("wrong-2")).rejects.toMatchObject({ status: 401 });
  await expect(attempt("wrong-3")).rejects.toThrow(LockoutError);
  const locked = attempt("correct-horse");
  await expect(locked).rejects.toThrow(LockoutError);
  const { until } = (await locked.catch((error: unknown) => error)) as LockoutError;
  expect(until?.getTime()).toBeGreaterThan(Date.now());
  expect(until?.getTime()).toBeLessThanOrEqual(Date.now() + 61_000);
});
