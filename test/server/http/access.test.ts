import { createSecretKey, generateKeyPairSync } from "node:crypto";
import { type Operation, operations, ROLES, type Role, roleAtLeast } from "@gatehouse-access/sdk/contract";
import { type JWTPayload, SignJWT } from "jose";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type CallOptions,
  type Credentials,
  enrol,
  startApp,
  type TestApp,
  type TestUser,
} from "./testApp.ts";

type Id = keyof typeof operations;

let app: TestApp;
let owner: TestUser;
let stranger: TestUser;
let uid: string;
let deviceToken: string;
const { privateKey: foreignKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const tokens = new Map<Role, string>();
const keys = new Map<Role, string>();

beforeAll(async () => {
  app = await startApp();
  owner = await app.user("owner", "lab");
  stranger = await app.user("stranger", "elsewhere");
  tokens.set("owner", owner.token);
  for (const role of ROLES) {
    if (role !== "owner") {
      const member = await app.user(role);
      const invited = await app.call("inviteMember", {
        token: owner.token,
        params: { tenant: owner.tenant },
        body: { email: member.email, role },
      });
      expect(invited.status).toBe(200);
      const session = await app.call("getNamespaceToken", {
        token: member.token,
        params: { tenant: owner.tenant },
      });
      tokens.set(role, session.body.token);
    }
    const key = await app.call("createApiKey", {
      token: owner.token,
      body: { name: role, expires_at: 30, role },
    });
    keys.set(role, key.body.id);
  }
  ({ uid, token: deviceToken } = await enrol(app, owner.tenant, "00:00:00:00:00:01"));
});
afterAll(() => app.stop());

/** A request that changes nothing even when it is let through: its object or its body is missing. */
function request(id: Id, credentials: Credentials): CallOptions {
  const operation: Operation = operations[id];
  const missing: Record<string, string> = {
    tenant: owner.tenant,
    uid: id === "updateMember" || id === "removeMember" ? "0".repeat(24) : "0".repeat(64),
    status: "reject",
    tag: "nowhere",
    fingerprint: Array(16).fill("00").join(":"),
    key: "nokey",
    id: "4711",
  };
  const params = Object.fromEntries(
    Object.keys(operation.params.shape).map((name) => [name, missing[name] ?? ""]),
  );
  return { params, ...credentials, ...(operation.body && { body: {} }) };
}

const ids = Object.keys(operations) as Id[];
const closed = ids.filter((id) => operations[id].scope !== "public");
// Let through, these would end the namespace or a membership; their own tests do that.
const harmless = (id: Id) => id !== "deleteNamespace" && id !== "leaveNamespace";

function permitted(operation: Operation, kind: "jwt" | "apikey" | "device", role: Role): boolean {
  return (
    operation.auth.includes(kind) && (operation.minRole === null || roleAtLeast(role, operation.minRole))
  );
}

describe.each(closed)("%s", (id) => {
  const operation: Operation = operations[id];

  test("needs a credential that is ours", async () => {
    const { publicKey, privateKey: ours } = app.services.keys;
    const claims = { claims: "user", id: owner.id, name: "owner", tenant: owner.tenant, ver: 0 };
    const kid = app.services.keys.kid;
    const sign = (alg: string, key: Parameters<SignJWT["sign"]>[0], exp: string | number = "1h") =>
      new SignJWT(claims).setProtectedHeader({ alg, kid }).setIssuedAt().setExpirationTime(exp).sign(key);
    const signed = (header: { alg: string; kid?: string }, payload: JWTPayload) =>
      new SignJWT(payload).setProtectedHeader(header).setExpirationTime("1h").sign(ours);
    const [, payload] = owner.token.split(".");
    const none = `${Buffer.from('{"alg":"none"}').toString("base64url")}.${payload}.`;
    const pem = createSecretKey(Buffer.from(publicKey.export({ type: "spki", format: "pem" })));
    const wrong: Credentials[] = [
      {},
      { token: "garbage" },
      { token: none },
      { token: await sign("RS256", foreignKey) },
      { token: await sign("HS256", pem) },
      { token: await sign("RS512", ours) },
      { token: await sign("RS256", ours, Math.floor(Date.now() / 1000) - 1) },
      { token: await new SignJWT(claims).setProtectedHeader({ alg: "RS256", kid }).sign(ours) },
      { token: await signed({ alg: "RS256" }, claims) },
      { token: await signed({ alg: "RS256", kid: "another" }, claims) },
      { token: await signed({ alg: "RS256", kid }, { ...claims, ver: 1 }) },
      { token: await signed({ alg: "RS256", kid }, { ...claims, ver: undefined }) },
      { apiKey: "c2a1f0de-7a51-4f2e-9c0b-2f7d5b8e4a10" },
      { apiKey: "c2a1f0de-7a51-4f2e-9c0b-2f7d5b8e4a10", token: owner.token },
    ];
    for (const credentials of wrong) {
      const { status, body } = await app.call(id, request(id, credentials));
      expect([status, body.message], JSON.stringify(credentials)).toEqual([
        401,
        "missing or malformed jwt or API token",
      ]);
    }
  });

  test("lets each role and kind of credential do what the contract says", async () => {
    for (const role of ROLES) {
      for (const [kind, credentials] of [
        ["jwt", { token: tokens.get(role) }],
        ["apikey", { apiKey: keys.get(role) }],
      ] as const) {
        const expected = permitted(operation, kind, role);
        if (expected && !harmless(id)) continue;
        const { status, text } = await app.call(id, request(id, credentials));
        expect(status === 403, `${role} ${kind}: ${status} ${text}`).toBe(!expected);
        expect(status).not.toBe(401);
      }
    }
    const device = await app.call(id, request(id, { token: deviceToken }));
    // The device of the path is never the caller, here.
    const allowed = permitted(operation, "device", "owner") && !("uid" in operation.params.shape);
    expect(device.status === 403, device.text).toBe(!allowed);
    expect(device.status).not.toBe(401);
  });

  test("keeps out the owner of another namespace", async () => {
    const { status } = await app.call(id, request(id, { token: stranger.token }));
    if (operation.scope === "path" || operation.scope === "member") expect(status).toBe(403);
  });
});

test("a device's token is for that device alone, and ends with it", async () => {
  const { tenant, token } = owner;
  const mine = await enrol(app, tenant, "00:00:00:00:00:11");
  const other = await enrol(app, tenant, "00:00:00:00:00:12");
  const offline = (of: { uid: string }) =>
    app.call("offlineDevice", { token: mine.token, params: { uid: of.uid } });
  expect((await offline(mine)).status).toBe(200);
  expect((await offline(other)).status).toBe(403);
  expect((await app.call("deleteDevice", { token, params: { uid: mine.uid } })).status).toBe(200);
  expect((await offline(mine)).status).toBe(401);
});

test("a path tenant that no namespace has is 404, one that is no uuid 400", async () => {
  for (const id of ["editNamespace", "getNamespace", "deleteNamespace", "inviteMember"] as const) {
    const options = request(id, { token: owner.token });
    const other = (tenant: string) => ({ ...options, params: { ...options.params, tenant } });
    expect((await app.call(id, other("00000000-0000-4000-8000-000000000000"))).status).toBe(404);
    expect((await app.call(id, other("nonsense"))).status).toBe(400);
  }
});

test("permission comes before the check of values, authentication before both", async () => {
  const body = { name: 5 };
  const params = { tenant: owner.tenant };
  expect((await app.call("editNamespace", { params, body })).status).toBe(401);
  expect((await app.call("editNamespace", { params, body, token: tokens.get("observer") })).status).toBe(403);
  expect((await app.call("editNamespace", { params, body, token: owner.token })).status).toBe(422);
});

test("objects of another namespace do not exist", async () => {
  const { token } = stranger;
  for (const id of ["getDevice", "deleteDevice", "acceptDevice"] as const) {
    expect((await app.call(id, { token, params: { uid } })).status).toBe(404);
  }
  expect((await app.call("renameDevice", { token, params: { uid }, body: { name: "mine" } })).status).toBe(
    404,
  );
  expect((await app.call("createDeviceTag", { token, params: { uid }, body: { tag: "mine" } })).status).toBe(
    404,
  );
  expect((await app.call("deleteApiKey", { token, params: { key: "owner" } })).status).toBe(404);
  expect((await app.call("getDevices", { token })).body).toEqual([]);
  expect((await app.call("listApiKeys", { token })).body).toEqual([]);
});

test("a token works with and without Bearer; an empty key header is none", async () => {
  const bare = { headers: { authorization: owner.token } };
  expect((await app.call("getDevices", bare)).status).toBe(200);
  expect((await app.call("getDevices", { headers: { authorization: `bearer ${owner.token}` } })).status).toBe(
    200,
  );
  expect((await app.call("getDevices", { token: owner.token, apiKey: "" })).status).toBe(200);
});

test("a role change counts with the next request, and a removed member's token is refused", async () => {
  const member = await app.user("changing");
  const params = { tenant: owner.tenant, uid: member.id };
  const invite = { token: owner.token, params, body: { email: member.email, role: "observer" } };
  expect((await app.call("inviteMember", invite)).status).toBe(200);
  const { body } = await app.call("getNamespaceToken", { token: member.token, params });
  const rename = { token: body.token, params: { uid }, body: { name: "renamed" } };
  expect((await app.call("renameDevice", rename)).status).toBe(403);
  await app.call("updateMember", { token: owner.token, params, body: { role: "operator" } });
  expect((await app.call("renameDevice", rename)).status).toBe(200);
  await app.call("removeMember", { token: owner.token, params });
  expect((await app.call("renameDevice", rename)).status).toBe(401);
  expect((await app.call("getUserInfo", { token: body.token })).status).toBe(401);
});

test("a user's token without a namespace: 403, on tags 404", async () => {
  const { token } = await app.user("homeless");
  for (const id of [
    "getDevices",
    "getContainers",
    "getPublicKeys",
    "getFirewallRules",
    "listApiKeys",
  ] as const) {
    expect((await app.call(id, { token })).status).toBe(403);
  }
  expect((await app.call("getTags", { token })).status).toBe(404);
  expect((await app.call("getUserInfo", { token })).body).toMatchObject({ tenant: "", role: "" });
});

test("tokens last 72 hours", async () => {
  const timed = await startApp();
  const { token } = await timed.user("brief", "brief");
  timed.pass(72 * 3600 - 60);
  expect((await timed.call("getDevices", { token })).status).toBe(200);
  timed.pass(61);
  expect((await timed.call("getDevices", { token })).status).toBe(401);
  const claims = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
  expect(claims).toMatchObject({ claims: "user", origin: "local", name: "brief", mfa: false });
  expect(claims.exp - claims.iat).toBe(259_200);
  expect(claims).not.toHaveProperty("iss");
  expect(claims).not.toHaveProperty("role");
  await timed.stop();
});
