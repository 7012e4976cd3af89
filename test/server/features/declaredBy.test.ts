import { type Operation, operations, takesDeclaredBy } from "@gatehouse-access/sdk/contract";
import { beforeEach, describe, expect, test } from "vitest";
import { expectError } from "../http/answers.ts";
import { withAppAndUser } from "../http/appOfTest.ts";
import { type CallOptions, DENY_RULE, enroll, PUBLIC_KEY, valuesOf } from "../http/testApp.ts";

type Id = keyof typeof operations;

const { data, ...KEY } = PUBLIC_KEY;
const ORIGIN = { project: "fleet", stack: "prod" };

const { app, ana } = withAppAndUser();
let uid: string;
beforeEach(async () => {
  app.stopClock();
  ({ uid } = await enroll(app, ana.tenant, "00:00:00:00:00:01"));
});

const call = (id: Id, options: CallOptions = {}) => ana.call(id, options);

/** Sends a write that must succeed. `by` is the value of the header that names the declaring resource. */
async function write(id: Id, by: string | undefined, options: CallOptions = {}) {
  const headers: Record<string, string> =
    by === undefined ? {} : { "gatehouse-declared-by": `fleet/prod/${by}` };
  const answer = await call(id, { ...options, headers });
  expect(answer.status, `${id} ${answer.text}`).toBe(200);
  return answer.body;
}

const now = () => app.services.now().toISOString();
const by = (resource: string, at = now()) => ({ ...ORIGIN, resource, at });

const namespace = async () => (await call("getNamespace")).body;
const members = async () => (await namespace()).members as { id: string; declared_by?: object }[];
const keys = async () => (await call("getPublicKeys")).body;
const apiKeys = async () => (await call("listApiKeys")).body;
const device = async () => (await call("getDevice", { params: { uid } })).body;

test("returns the last declaration of each kind of object in the write's answer, alone and in lists", async () => {
  const created = await write("createPublicKey", "laptop", { body: { ...KEY, data } });
  expect(created.declared_by).toEqual(by("laptop"));
  const rule = await write("createFirewallRule", "deny", { body: DENY_RULE });
  const secret = await write("createApiKey", "deploy", { body: { name: "deploy", expires_at: 30 } });
  expect([rule.declared_by, secret.declared_by]).toEqual([by("deny"), by("deploy")]);
  const bob = await app.user("bob");
  const body = { email: bob.email, role: "observer" };
  const invited = await write("inviteMember", "bob", { body });
  await write("editNamespace", "lab", { body: { settings: { session_record: false } } });
  await write("acceptDevice", "edge-01", { params: { uid } });
  await write("createDeviceTag", "edge-tags", { params: { uid }, body: { tag: "edge" } });
  const other = (await write("createNamespace", "staging", { body: { name: "staging" } })).declared_by;

  expect(other).toEqual(by("staging"));
  expect(invited.members).toEqual(await members());
  expect((await namespace()).declared_by).toEqual(by("lab"));
  expect(new Map((await members()).map((member) => [member.id, member.declared_by]))).toEqual(
    new Map([
      [ana.id, undefined],
      [bob.id, by("bob")],
    ]),
  );
  expect(valuesOf(await keys(), "declared_by")).toEqual([by("laptop")]);
  const rules = (await call("getFirewallRules")).body;
  expect(rules).toEqual([(await call("getFirewallRule", { params: { id: rule.id } })).body]);
  expect(rules[0].declared_by).toEqual(by("deny"));
  expect((await apiKeys())[0].declared_by).toEqual(by("deploy"));
  expect(await device()).toMatchObject({ declared_by: by("edge-01"), tags_declared_by: by("edge-tags") });
  expect((await call("getDevices")).body).toEqual([await device()]);
});

test("has no declaration before a write with the header, keeps it in a write without the header, and replaces it in a later write", async () => {
  await write("createPublicKey", undefined, { body: { ...KEY, data } });
  const [{ fingerprint, ...plain }] = await keys();
  expect(plain).not.toHaveProperty("declared_by");
  const update = (resource: string | undefined, name: string) =>
    write("updatePublicKey", resource, { params: { fingerprint }, body: { ...KEY, name } });
  await update("laptop", "one");
  const first = by("laptop");
  app.pass(60);
  expect((await update(undefined, "two")).declared_by).toEqual(first);
  app.pass(60);
  expect((await update("desk", "three")).declared_by).toEqual(by("desk"));
  expect((await keys())[0].declared_by).toEqual(by("desk"));
});

test("stays with a renamed API key", async () => {
  await write("createApiKey", "deploy", { body: { name: "deploy", expires_at: 30 } });
  const declared = by("deploy");
  await write("updateApiKey", undefined, { params: { key: "deploy" }, body: { name: "release" } });
  expect(await apiKeys()).toEqual([expect.objectContaining({ name: "release", declared_by: declared })]);
  await write("updateApiKey", "ship", { params: { key: "release" }, body: { name: "ship-it" } });
  expect(await apiKeys()).toEqual([expect.objectContaining({ name: "ship-it", declared_by: by("ship") })]);
});

describe("is deleted with the object:", () => {
  test("an object that is created again without the header has no declaration", async () => {
    const { fingerprint } = await write("createPublicKey", "laptop", { body: { ...KEY, data } });
    await write("deletePublicKey", "laptop", { params: { fingerprint } });
    expect(await write("createPublicKey", undefined, { body: { ...KEY, data } })).not.toHaveProperty(
      "declared_by",
    );
    const bob = await app.user("bob");
    const body = { email: bob.email, role: "observer" };
    await write("inviteMember", "bob", { body });
    await write("removeMember", undefined, { params: { uid: bob.id } });
    await write("inviteMember", undefined, { body });
    expect((await members()).filter((member) => "declared_by" in member)).toEqual([]);
  });

  test.each([
    ["the device's own", () => write("deleteDeviceTag", "tags", { params: { uid, tag: "edge" } })],
    ["everywhere", () => write("deleteTag", undefined, { params: { tag: "edge" } })],
  ])("the last tag, %s", async (_, remove) => {
    const tag = (resource: string | undefined) =>
      write("createDeviceTag", resource, { params: { uid }, body: { tag: "edge" } });
    await tag("tags");
    expect(await device()).toHaveProperty("tags_declared_by");
    await remove();
    await tag(undefined);
    expect(await device()).not.toHaveProperty("tags_declared_by");
  });

  test("another tag keeps the field", async () => {
    await write("updateDeviceTags", "tags", { params: { uid }, body: { tags: ["edge", "core"] } });
    await write("deleteTag", undefined, { params: { tag: "edge" } });
    expect(await device()).toMatchObject({ tags: ["core"], tags_declared_by: by("tags") });
  });
});

test("ignores a write that fails, and a repeated creation", async () => {
  const create = (resource: string) => ({
    body: { ...KEY, data },
    headers: { "idempotency-key": "one", "gatehouse-declared-by": `fleet/prod/${resource}` },
  });
  const { body } = await call("createPublicKey", create("laptop"));
  expect((await call("createPublicKey", create("desk"))).body).toEqual(body);
  const { fingerprint } = body;
  const headers = { "gatehouse-declared-by": "fleet/prod/desk" };
  const refused = [
    { body: { ...KEY, filter: { tags: ["unused"] } }, headers },
    { body: KEY, headers: { ...headers, "if-match": '"other"' } },
  ];
  for (const options of refused) {
    const { status } = await call("updatePublicKey", { params: { fingerprint }, ...options });
    expect(status).toBeGreaterThanOrEqual(400);
  }
  expect((await keys())[0].declared_by).toEqual(by("laptop"));
});

test("records the declaration of each request in the audit trail, also for deletions and renamed tags", async () => {
  const { fingerprint } = await write("createPublicKey", "laptop", { body: { ...KEY, data } });
  await write("updatePublicKey", undefined, { params: { fingerprint }, body: { ...KEY, name: "manual" } });
  await write("deletePublicKey", "laptop", { params: { fingerprint } });
  await write("createDeviceTag", undefined, { params: { uid }, body: { tag: "edge" } });
  await write("renameTag", "tag", { params: { tag: "edge" }, body: { tag: "core" } });
  const { body } = await call("getAuditTrail", { query: { per_page: 5 } });
  expect(body.map((entry: Record<string, unknown>) => [entry.operation, entry.declared_by])).toEqual([
    ["renameTag", { ...ORIGIN, resource: "tag" }],
    ["createDeviceTag", undefined],
    ["deletePublicKey", { ...ORIGIN, resource: "laptop" }],
    ["updatePublicKey", undefined],
    ["createPublicKey", { ...ORIGIN, resource: "laptop" }],
  ]);
});

test("belongs to one namespace: writes of another namespace do not change it, and an equal object there does not show it", async () => {
  const eve = await app.user("eve", "elsewhere");
  const { fingerprint } = await write("createPublicKey", "laptop", { body: { ...KEY, data } });
  const foreign = { token: eve.token, headers: { "gatehouse-declared-by": "eve/prod/hers" } };
  await write("acceptDevice", "edge", { params: { uid } });
  for (const [id, options] of [
    ["updatePublicKey", { params: { fingerprint }, body: KEY }],
    ["renameDevice", { params: { uid }, body: { name: "hers" } }],
    ["editNamespace", { params: { tenant: ana.tenant }, body: {} }],
  ] as const) {
    expect([403, 404]).toContain((await call(id, { ...options, ...foreign })).status);
  }
  expect((await keys())[0].declared_by).toEqual(by("laptop"));
  expect((await device()).declared_by).toEqual(by("edge"));
  expect(await namespace()).not.toHaveProperty("declared_by");
  // The same public key in another namespace is a different object, which no program has declared.
  const own = { token: eve.token, body: { ...KEY, data } };
  expect((await call("createPublicKey", own)).body).not.toHaveProperty("declared_by");
  expect((await call("getPublicKeys", { token: eve.token })).text).not.toContain("declared_by");
});

describe("the header", () => {
  const rename = (value: string, id: Id = "renameDevice", options: CallOptions = {}) =>
    call(id, {
      params: { uid },
      body: { name: "gate" },
      headers: { "gatehouse-declared-by": value },
      ...options,
    });

  test("accepts any text up to 1 KiB", async () => {
    const parts = ["naïve project", "a/b", "ключ: 🔑, 100%"];
    expect((await rename(parts.map(encodeURIComponent).join("/"))).status).toBe(200);
    const [project, stack, resource] = parts;
    expect((await device()).declared_by).toEqual({ project, stack, resource, at: now() });
    expect((await rename(`a/b/${"c".repeat(1020)}`)).status).toBe(200);
  });

  test("rejects other values, and changes nothing", async () => {
    const before = await device();
    const refused = {
      "too few parts": "fleet/prod",
      "too many": "fleet/prod/key/more",
      "an empty part": "fleet//key",
      "half an escape": "fleet/prod/%4",
      "bytes that are no UTF-8": "fleet/prod/%ff",
      "a control character": "fleet/prod/%1b%5b31m",
      "two values": "fleet/prod/key, fleet/prod/other",
      "too long": `a/b/${"c".repeat(1021)}`,
    };
    for (const [what, value] of Object.entries(refused)) {
      expectError(
        await rename(value),
        400,
        "Gatehouse-Declared-By must be project/stack/resource with at most 1024 bytes, and each part must be non-empty percent-encoded UTF-8 without control characters",
        { label: what },
      );
    }
    expect(await device()).toEqual(before);
  });

  test("is ignored by operations without declarations", async () => {
    const reads: Id = "getDevice";
    expect((await rename("%", reads, { body: undefined })).status).toBe(200);
  });

  test("applies to writes of declared objects only", () => {
    const taking = Object.values<Operation>(operations).filter(takesDeclaredBy);
    expect(taking.filter(({ method }) => method === "GET")).toEqual([]);
    const kinds = new Set(taking.map(({ object }) => object));
    expect([...kinds].sort()).toEqual(
      [
        "apiKey",
        "device",
        "deviceTags",
        "firewallRule",
        "member",
        "namespace",
        "publicKey",
        "tag",
        "trustedWorkload",
      ].sort(),
    );
  });
});
