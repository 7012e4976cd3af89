import { beforeEach, expect, test } from "vitest";
import { withAppAndUser } from "../http/appOfTest.ts";
import { addMember, trailOf, WORKLOAD } from "../http/fixtures.ts";
import { DENY_RULE, enroll, PUBLIC_KEY } from "../http/testApp.ts";

const { app, ana } = withAppAndUser();
let uid: string;
beforeEach(async () => {
  ({ uid } = await enroll(app, ana.tenant, "00:00:00:00:00:01"));
});

const CLAIM = { project: "fleet", stack: "eu", resource: "laptop" };
const now = () => app.services.now().toISOString();

const claim = (kind: string, id: string, body: object = CLAIM, by = ana) =>
  by.call("claimObject", { params: { tenant: ana.tenant, kind, id }, body });

const declared = { headers: { "gatehouse-declared-by": "fleet/prod/laptop" } };
const createKey = async () => (await ana.call("createPublicKey", { body: PUBLIC_KEY, ...declared })).body;

test("stores the declaration of each kind of object, and changes nothing else", async () => {
  app.stopClock();
  const key = await createKey();
  const rule = await ana.call("createFirewallRule", { body: DENY_RULE });
  await ana.call("createApiKey", { body: { name: "de/ploy", expires_at: 30 } });
  const bob = await addMember(app, ana, "bob", "observer");
  await ana.call("acceptDevice", { params: { uid } });
  await ana.call("createDeviceTag", { params: { uid }, body: { tag: "edge" } });
  const workload = await ana.call("createTrustedWorkload", { body: WORKLOAD });
  const entries = await trailOf(ana);
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
  const namespace = await ana.call("getNamespace");
  expect(namespace.body).toMatchObject(claimed);
  expect(namespace.body.members).toContainEqual(expect.objectContaining({ id: bob.id, ...claimed }));
  expect((await ana.call("getDevice", { params: { uid } })).body).toMatchObject({
    ...claimed,
    tags: ["edge"],
    tags_declared_by: claimed.declared_by,
  });
  expect((await ana.call("getPublicKeys")).body).toEqual([{ ...key, ...claimed }]);
  expect((await ana.call("getFirewallRules")).body).toEqual([{ ...rule.body, ...claimed }]);
  expect((await ana.call("listApiKeys")).body[0]).toMatchObject(claimed);
  expect((await ana.call("listTrustedWorkloads")).body[0]).toMatchObject({
    ...claimed,
    revision: workload.body.revision,
  });
  expect(await trailOf(ana)).toEqual(entries);
});

test("requires the permission to change the object", async () => {
  const key = await createKey();
  await ana.call("acceptDevice", { params: { uid } });
  const bob = await addMember(app, ana, "bob", "operator");
  expect((await claim("publicKey", key.fingerprint, CLAIM, bob)).status).toBe(403);
  expect((await claim("device", uid, CLAIM, bob)).status).toBe(200);
  const body = { name: "deploy", expires_at: 30, role: "administrator" };
  const { id: apiKey } = (await ana.call("createApiKey", { body })).body;
  const byKey = (kind: string, id: string) =>
    app.call("claimObject", { apiKey, params: { tenant: ana.tenant, kind, id }, body: CLAIM });
  expect((await byKey("publicKey", key.fingerprint)).status).toBe(200);
  expect((await byKey("member", bob.id)).status).toBe(403);
});

test("rejects unknown objects, objects of other namespaces, unknown kinds and unusable declarations", async () => {
  const key = await createKey();
  const eve = await app.user("eve", "elsewhere");
  const foreign = (tenant: string) =>
    eve.call("claimObject", { params: { tenant, kind: "publicKey", id: key.fingerprint }, body: CLAIM });
  expect((await foreign(ana.tenant)).status).toBe(403);
  expect((await foreign(eve.tenant)).status).toBe(404);
  expect((await claim("publicKey", "00:00")).status).toBe(404);
  expect((await claim("namespace", eve.tenant)).status).toBe(404);
  expect((await claim("tunnel", "1")).status).toBe(400);
  for (const part of ["", "line\nbreak", "x".repeat(1100)]) {
    expect((await claim("publicKey", key.fingerprint, { ...CLAIM, resource: part })).status).toBe(400);
  }
  const [stored] = (await ana.call("getPublicKeys")).body;
  expect(stored.declared_by).toMatchObject({ stack: "prod", resource: "laptop" });
});
