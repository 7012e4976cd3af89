import { type Operation, operations, writesObject } from "@gatehouse-access/sdk/contract";
import { beforeEach, describe, expect, test } from "vitest";
import { trimAuditTrail } from "../../../server/features/audit/audit.ts";
import { withAppAndUser } from "../http/appOfTest.ts";
import { addMember } from "../http/fixtures.ts";
import { holdRequest } from "../http/heldRequest.ts";
import { type CallOptions, DENY_RULE, enroll, PASSWORD, PUBLIC_KEY } from "../http/testApp.ts";

type Id = keyof typeof operations;

let uid: string;
let { app, ana } = withAppAndUser();
beforeEach(async () => {
  ({ uid } = await enroll(app, ana.tenant, "00:00:00:00:00:01"));
});

const call = (id: Id, options: CallOptions = {}) => ana.call(id, options);
const trail = async (query: CallOptions["query"] = {}, credentials: CallOptions = {}) => {
  const answer = await call("getAuditTrail", { query: { per_page: 100, ...query }, ...credentials });
  expect(answer.status).toBe(200);
  return answer.body as { operation: string; object: object; before: object | null; after: object | null }[];
};

test("records actor, object, values before and after, time and address", async () => {
  const answer = await call("renameDevice", { params: { uid }, body: { name: "gate" } });
  const [entry] = await trail();
  expect(entry).toEqual({
    id: expect.any(Number),
    at: expect.any(String),
    actor: { kind: "user", id: ana.id, name: "ana" },
    address: "127.0.0.1",
    request_id: answer.headers.get("x-request-id"),
    operation: "renameDevice",
    object: { kind: "device", id: uid },
    before: { name: "00-00-00-00-00-01", status: "pending", public_url: false },
    after: { name: "gate", status: "pending", public_url: false },
  });
});

test("records every kind of write of the namespace, creations and deletions too, with the names of API keys", async () => {
  const written: Id[] = ["createNamespace", "authDevice"];
  const write = async (id: Id, options: CallOptions = {}) => {
    const answer = await call(id, options);
    expect(answer.status, `${id} ${answer.text}`).toBe(200);
    written.push(id);
    return answer.body;
  };
  const bob = await app.user("bob");
  await write("inviteMember", { body: { email: bob.email, role: "observer" } });
  await write("updateMember", { params: { uid: bob.id }, body: { role: "operator" } });
  await write("removeMember", { params: { uid: bob.id } });
  await write("editNamespace", { body: { settings: { session_record: false } } });
  const secret = (await write("createApiKey", { body: { name: "deploy", expires_at: 30 } })).id;
  await write("updateApiKey", { params: { key: "deploy" }, body: { name: "release" } });
  await write("acceptDevice", { params: { uid } });
  await write("createDeviceTag", { params: { uid }, body: { tag: "edge" } });
  await write("renameTag", { params: { tag: "edge" }, body: { tag: "core" } });
  const apiKey = { token: undefined, apiKey: secret };
  const key = { name: "key", username: "root", filter: PUBLIC_KEY.filter };
  const { fingerprint } = await write("createPublicKey", {
    ...apiKey,
    body: { ...key, data: PUBLIC_KEY.data },
  });
  await write("updatePublicKey", { ...apiKey, params: { fingerprint }, body: { ...key, username: "adm" } });
  await write("deletePublicKey", { ...apiKey, params: { fingerprint } });
  const { id } = await write("createFirewallRule", { body: DENY_RULE });
  await write("deleteFirewallRule", { params: { id } });
  await write("deleteDevice", { params: { uid } });
  await write("deleteApiKey", { params: { key: "release" } });

  const entries = await trail();
  expect(entries.map((entry) => entry.operation)).toEqual(written.toReversed());
  const of = (operation: Id) => entries.find((entry) => entry.operation === operation);
  expect(of("createPublicKey")).toMatchObject({
    actor: { kind: "apikey", id: "release", name: "release" },
    object: { kind: "publicKey", id: fingerprint },
    before: null,
    after: { name: "key" },
  });
  expect(of("deletePublicKey")).toMatchObject({ before: { username: "adm" }, after: null });
  expect(of("updateApiKey")).toMatchObject({
    object: { kind: "apiKey", id: "deploy" },
    before: { name: "deploy" },
    after: { name: "release" },
  });
  expect(of("inviteMember")).toMatchObject({
    object: { kind: "member", id: bob.id },
    after: { role: "observer" },
  });
  expect(of("renameTag")).toMatchObject({ before: { tag: "edge" }, after: { tag: "core" } });
  // No field of an entry contains the secret.
  expect(JSON.stringify(entries)).not.toContain(secret);
});

describe("has no entry", () => {
  const count = async () => (await trail()).length;

  test("for a write that failed or changed nothing", async () => {
    const before = await count();
    await call("renameDevice", { params: { uid: "0".repeat(64) }, body: { name: "gate" } });
    await call("renameDevice", { params: { uid }, body: { name: "not a name" } });
    await call("renameDevice", { params: { uid }, body: { name: "x" }, headers: { "if-match": '"other"' } });
    expect((await call("updateDeviceStatus", { params: { uid, status: "pending" } })).status).toBe(200);
    expect(await count()).toBe(before);
  });

  test("for a repeated creation", async () => {
    const headers = { "idempotency-key": "once" };
    expect((await call("createPublicKey", { body: PUBLIC_KEY, headers })).status).toBe(200);
    const before = await count();
    expect((await call("createPublicKey", { body: PUBLIC_KEY, headers })).status).toBe(200);
    expect(await count()).toBe(before);
  });
});

test("filters by time and by object, in pages", async () => {
  for (const name of ["one", "two", "three"]) {
    app.pass(60);
    await call("renameDevice", { params: { uid }, body: { name } });
  }
  const names = (entries: Awaited<ReturnType<typeof trail>>) =>
    entries.map(({ after }) => (after as { name: string }).name);
  const [last] = (await trail()) as unknown as { at: string }[];
  expect(names(await trail({ since: last?.at ?? "" }))).toEqual(["three"]);
  expect(names(await trail({ until: last?.at ?? "", kind: "device" }))).toEqual([
    "two",
    "one",
    "00-00-00-00-00-01",
  ]);
  expect(names(await trail({ object: uid, per_page: 1, page: 2 }))).toEqual(["two"]);
  expect(await trail({ kind: "publicKey" })).toEqual([]);
});

test("returns at most 100 entries of a long trail at once", async () => {
  const data = Array.from({ length: 250 }, (_, index) => ({
    tenantId: ana.tenant,
    at: app.services.now(),
    requestId: "r",
    address: "192.0.2.1",
    actorKind: "user",
    actorId: ana.id,
    actorName: "ana",
    operation: "renameDevice",
    objectKind: "device",
    objectId: `device-${index}`,
  }));
  await app.services.db.auditEntry.createMany({ data });
  const page = async (query: Record<string, number>) => {
    const answer = await call("getAuditTrail", { query });
    const entries = answer.body as { object: { id: string } }[];
    const [first, last] = [entries[0], entries.at(-1)].map((entry) => entry?.object.id);
    return [entries.length, first, last, answer.headers.get("x-total-count")];
  };
  const total = "252";
  expect(await page({})).toEqual([10, "device-249", "device-240", total]);
  expect(await page({ per_page: 1_000_000 })).toEqual([100, "device-249", "device-150", total]);
  expect(await page({ per_page: 1_000_000, page: 3 })).toEqual([52, "device-49", ana.tenant, total]);
});

test("records that accepting a machine's new device deleted its former one", async () => {
  expect((await call("acceptDevice", { params: { uid } })).status).toBe(200);
  const renewed = await enroll(app, ana.tenant, "00:00:00:00:00:01", { public_key: "a new key" });
  expect((await call("acceptDevice", { params: { uid: renewed.uid } })).status).toBe(200);
  const device = { name: "00-00-00-00-00-01", status: "accepted", public_url: false };
  expect(await trail({ object: uid })).toMatchObject([
    { operation: "acceptDevice", object: { kind: "device", id: uid }, before: device, after: null },
    { operation: "acceptDevice", after: device },
    { operation: "authDevice" },
  ]);
});

test("rejects a write of a role that was removed while the request's body was incomplete", async () => {
  const bob = await addMember(app, ana, "bob", "administrator");
  const backdoor = { name: "backdoor", expires_at: -1 };
  const finish = await holdRequest(app, bob, "POST", "/api/namespaces/api-key", backdoor);
  await call("removeMember", { params: { uid: bob.id } });
  expect(await finish()).toBe(401);
  expect((await call("listApiKeys")).body).toEqual([]);
});

test("names an object for every write of the contract", () => {
  const isOpen = ({ scope }: Operation) => scope === "public";
  const own = new Set([
    "updateUser",
    "updateUserData",
    "updateUserPassword",
    "deleteUser",
    "enableMfa",
    "disableMfa",
    // These operations write their own audit entries. Programs cannot declare sessions or billing, and the response to
    // a new connector does not identify the connector.
    "closeSession",
    "deleteSessionRecord",
    "connectorCreate",
    "createCustomer",
    "attachPaymentMethod",
    "detachPaymentMethod",
    "setDefaultPaymentMethod",
    "createSubscription",
    "choiceDevices",
    // Programs declare the role of a membership, which this operation does not change. The operation writes its own
    // audit entry.
    "acceptInvite",
  ]);
  // These operations change no values that a Pulumi or Terraform program can declare. They sign, mark a device as
  // offline, continue a session, renew the session of a workload, store who declares an object, or call the payment
  // gateway.
  const passing = new Set([
    "authSshPublicKey",
    "offlineDevice",
    "setSessionAuthenticated",
    "recordSession",
    "renewWorkloadSession",
    "claimObject",
    "evaluateBilling",
    "reportBilling",
    "createBillingPortal",
  ]);
  for (const operation of Object.values(operations as Record<string, Operation>)) {
    if (operation.method === "GET" || isOpen(operation) || own.has(operation.id) || passing.has(operation.id))
      continue;
    expect(writesObject(operation), operation.id).toBe(true);
  }
});

test("records a user's account without namespace, and only that the password changed", async () => {
  const change = { name: "Ana R", password: "another-horse", current_password: PASSWORD };
  expect((await call("updateUser", { body: change })).status).toBe(200);
  const rows = await app.services.db.auditEntry.findMany({ where: { operation: "updateUser" } });
  expect(rows).toMatchObject([{ tenantId: null, actorId: ana.id, objectKind: "user", objectId: ana.id }]);
  expect(JSON.parse(rows[0]?.before ?? "")).toMatchObject({ name: "ana", password: "***" });
  expect(JSON.parse(rows[0]?.after ?? "")).toMatchObject({ name: "Ana R", password: "*** (changed)" });
  expect(JSON.stringify(rows)).not.toMatch(/horse|\$2b\$/);
});

test("records nothing for an unchanged account", async () => {
  for (const body of [{}, { name: "ana" }]) {
    expect((await call("updateUser", { body })).status).toBe(200);
  }
  expect(await app.services.db.auditEntry.count({ where: { operation: "updateUser" } })).toBe(0);
});

test("deletes entries after their retention", async () => {
  const trim = (auditRetention: number) =>
    trimAuditTrail({ ...app.services, settings: { ...app.services.settings, auditRetention } });
  const count = () => app.services.db.auditEntry.count();
  app.pass(29 * 24 * 3600);
  ana = { ...ana, token: await app.tokenOf(ana) };
  await call("renameDevice", { params: { uid }, body: { name: "gate" } });
  app.pass(2 * 24 * 3600);
  expect(await count()).toBe(3);
  await trim(0);
  expect(await count()).toBe(3);
  await trim(30);
  expect(await trail({}, { token: await app.tokenOf(ana) })).toMatchObject([{ operation: "renameDevice" }]);
});
