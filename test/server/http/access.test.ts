import { beforeAll, expect, test } from "vitest";
import { testApp, withSharedApp } from "./appOfTest.ts";
import { enroll, type TestUser } from "./testApp.ts";

let owner: TestUser;
let uid: string;

const app = withSharedApp();
beforeAll(async () => {
  owner = await app.user("owner", "lab");
  ({ uid } = await enroll(app, owner.tenant, "00:00:00:00:00:01"));
});

test("checks authentication before permission, and permission before values", async () => {
  const body = { name: 5 };
  const params = { tenant: owner.tenant };
  const watching = { name: "watching", expires_at: 30, role: "observer" };
  const key = await owner.call("createApiKey", { body: watching });
  expect((await app.call("editNamespace", { params, body })).status).toBe(401);
  expect((await app.call("editNamespace", { params, body, apiKey: key.body.id })).status).toBe(403);
  expect((await owner.call("editNamespace", { params, body })).status).toBe(422);
});

test("accepts a token with and without Bearer, and ignores an empty key header", async () => {
  const bare = { headers: { authorization: owner.token } };
  expect((await app.call("getDevices", bare)).status).toBe(200);
  expect((await app.call("getDevices", { headers: { authorization: `bearer ${owner.token}` } })).status).toBe(
    200,
  );
  expect((await owner.call("getDevices", { apiKey: "" })).status).toBe(200);
});

test("applies a role change to the next request, and rejects a removed member's token", async () => {
  const member = await app.user("changing");
  const params = { tenant: owner.tenant, uid: member.id };
  const invite = { token: owner.token, params, body: { email: member.email, role: "observer" } };
  expect((await app.call("inviteMember", invite)).status).toBe(200);
  const { body } = await member.call("getNamespaceToken", { params });
  const rename = { token: body.token, params: { uid }, body: { name: "renamed" } };
  expect((await app.call("renameDevice", rename)).status).toBe(403);
  await owner.call("updateMember", { params, body: { role: "operator" } });
  expect((await app.call("renameDevice", rename)).status).toBe(200);
  await owner.call("removeMember", { params });
  expect((await app.call("renameDevice", rename)).status).toBe(401);
  expect((await app.call("getUserInfo", { token: body.token })).status).toBe(401);
});

test("returns an empty tenant and role for a user without a namespace", async () => {
  const outsider = await app.user("outsider");
  expect((await outsider.call("getUserInfo")).body).toMatchObject({ tenant: "", role: "" });
});

test("tokens last 72 hours", async () => {
  const timed = await testApp();
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
});
