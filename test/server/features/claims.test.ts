import { beforeEach, expect, test } from "vitest";
import { withAppAndUser } from "../http/appOfTest.ts";
import { ED25519, enroll } from "../http/testApp.ts";

const { app, ana } = withAppAndUser();
let uid: string;
beforeEach(async () => {
  ({ uid } = await enroll(app, ana.tenant, "00:00:00:00:00:01"));
});

const CLAIM = { project: "fleet", stack: "eu", resource: "laptop" };
const now = () => app.services.now().toISOString();

const claim = (kind: string, id: string, body: object = CLAIM, token = ana.token) =>
  app.call("claimObject", { token, params: { tenant: ana.tenant, kind, id }, body });

const data = Buffer.from(`${ED25519}\n`).toString("base64");
const KEY = { name: "key", username: "root", filter: { hostname: ".*" }, data };
const createKey = async () =>
  (
    await app.call("createPublicKey", {
      token: ana.token,
      body: KEY,
      headers: { "gatehouse-declared-by": "fleet/prod/laptop" },
    })
  ).body;
const trail = async () =>
  (await app.call("getAuditTrail", { token: ana.token, params: { tenant: ana.tenant } })).body;

test("stores the declaration of each kind of object, and changes nothing else", async () => {
  app.stopClock();
  const token = ana.token;
  const params = { tenant: ana.tenant };
  const key = await createKey();
  const filter = { hostname: ".*" };
  const rule = await app.call("createFirewallRule", {
    token,
    body: { action: "deny", active: true, priority: 1, source_ip: ".*", username: ".*", filter },
  });
  await app.call("createApiKey", { token, body: { name: "de/ploy", expires_at: 30 } });
  const bob = await app.user("bob");
  await app.call("inviteMember", { token, params, body: { email: bob.email, role: "observer" } });
  await app.call("acceptDevice", { token, params: { uid } });
  await app.call("createDeviceTag", { token, params: { uid }, body: { tag: "edge" } });
  const workload = await app.call("createTrustedWorkload", {
    token,
    body: {
      name: "ci",
      issuer: "https://issuer.example.org",
      audience: "gatehouse",
      claims: { sub: "repo" },
      role: "observer",
    },
  });
  const entries = await trail();
  app.pass(60);
  const claimed = { declared_by: { ...CLAIM, at: now() } };
  const objects = [
    ["namespace", ana.tenant],
    ["member", bob.id],
    ["device", uid],
    ["deviceTags", uid],
    ["publicKey", key.fingerprint],
    ["firewallRule", rule.body.id],
    ["apiKey", "de/ploy"],
    ["trustedWorkload", workload.body.id],
  ] as const;
  for (const [kind, id] of objects) {
    const { status, body } = await claim(kind, id);
    expect({ kind, status, body }).toEqual({ kind, status: 200, body: claimed });
  }
  const namespace = await app.call("getNamespace", { token, params });
  expect(namespace.body).toMatchObject(claimed);
  expect(namespace.body.members).toContainEqual(expect.objectContaining({ id: bob.id, ...claimed }));
  expect((await app.call("getDevice", { token, params: { uid } })).body).toMatchObject({
    ...claimed,
    tags: ["edge"],
    tags_declared_by: claimed.declared_by,
  });
  expect((await app.call("getPublicKeys", { token })).body).toEqual([{ ...key, ...claimed }]);
  expect((await app.call("getFirewallRules", { token })).body).toEqual([{ ...rule.body, ...claimed }]);
  expect((await app.call("listApiKeys", { token })).body[0]).toMatchObject(claimed);
  expect((await app.call("listTrustedWorkloads", { token })).body[0]).toMatchObject({
    ...claimed,
    revision: workload.body.revision,
  });
  expect(await trail()).toEqual(entries);
});

test("requires the permission to change the object", async () => {
  const key = await createKey();
  await app.call("acceptDevice", { token: ana.token, params: { uid } });
  const bob = await app.user("bob");
  const body = { email: bob.email, role: "operator" };
  await app.call("inviteMember", { token: ana.token, params: { tenant: ana.tenant }, body });
  const token = await app.tokenOf({ ...bob, tenant: ana.tenant });
  expect((await claim("publicKey", key.fingerprint, CLAIM, token)).status).toBe(403);
  expect((await claim("device", uid, CLAIM, token)).status).toBe(200);
  const secret = await app.call("createApiKey", {
    token: ana.token,
    body: { name: "deploy", expires_at: 30, role: "administrator" },
  });
  const byKey = (kind: string, id: string) =>
    app.call("claimObject", {
      token: undefined,
      apiKey: secret.body.id,
      params: { tenant: ana.tenant, kind, id },
      body: CLAIM,
    });
  expect((await byKey("publicKey", key.fingerprint)).status).toBe(200);
  expect((await byKey("member", bob.id)).status).toBe(403);
});

test("rejects unknown objects, objects of other namespaces, unknown kinds and unusable declarations", async () => {
  const key = await createKey();
  const eve = await app.user("eve", "elsewhere");
  const foreign = (tenant: string) =>
    app.call("claimObject", {
      token: eve.token,
      params: { tenant, kind: "publicKey", id: key.fingerprint },
      body: CLAIM,
    });
  expect((await foreign(ana.tenant)).status).toBe(403);
  expect((await foreign(eve.tenant)).status).toBe(404);
  expect((await claim("publicKey", "00:00")).status).toBe(404);
  expect((await claim("namespace", eve.tenant)).status).toBe(404);
  expect((await claim("tunnel", "1")).status).toBe(400);
  for (const part of ["", "line\nbreak", "x".repeat(1100)]) {
    expect((await claim("publicKey", key.fingerprint, { ...CLAIM, resource: part })).status).toBe(400);
  }
  const [stored] = (await app.call("getPublicKeys", { token: ana.token })).body;
  expect(stored.declared_by).toMatchObject({ stack: "prod", resource: "laptop" });
});
