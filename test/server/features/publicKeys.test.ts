import { beforeEach, expect, test } from "vitest";
import { DSA_FINGERPRINT, DSA_KEY } from "../../support/dsaKey.ts";
import { expectError, statusesOf } from "../http/answers.ts";
import { withAppAndUser } from "../http/appOfTest.ts";
import { ED25519, enroll, PUBLIC_KEY, valuesOf } from "../http/testApp.ts";

const { app, ana } = withAppAndUser();
beforeEach(async () => {
  const { uid } = await enroll(app, ana.tenant, "00:00:00:00:00:01");
  await ana.call("updateDeviceTags", { params: { uid }, body: { tags: ["edge", "core"] } });
});

const base64 = (text: string) => Buffer.from(text).toString("base64");
const create = (more: object = {}) =>
  ana.call("createPublicKey", { body: { ...PUBLIC_KEY, username: "^root$", ...more } });
const FINGERPRINT = "0f:a2:0a:d7:38:3e:65:45:08:6b:63:84:1c:ff:dc:ba";

/**
 * Creates an authorized_keys line: the key type as text, then the base64 data, which contains a key type again and the
 * key. The tests pass two different key types, or truncated key data.
 */
const line = (type: string, inner: string, body: Buffer) => {
  const field = (bytes: Buffer) => Buffer.concat([Buffer.from([0, 0, 0, bytes.length]), bytes]);
  return `${type} ${Buffer.concat([field(Buffer.from(inner)), field(body)]).toString("base64")}`;
};

test("stores a key without its comment, under its MD5 fingerprint", async () => {
  const { status, body } = await create({ data: base64(`  ${ED25519}   ana@laptop \n`) });
  expect(status).toBe(200);
  expect(body).toMatchObject({
    fingerprint: FINGERPRINT,
    tenant_id: ana.tenant,
    name: "laptop",
    username: "^root$",
    filter: { hostname: ".*" },
    data: base64(`${ED25519}\n`),
  });
  expect((await create({ data: base64(`${ED25519} another comment`) })).status).toBe(409);
});

test("rejects an invalid key without repeating it", async () => {
  for (const [what, text] of [
    ["no key", "hello world"],
    ["an unknown type", "ssh-unknown AAAA"],
    ["a type that the blob contradicts", line("ssh-rsa", "ssh-ed25519", Buffer.alloc(32))],
    ["a blob that is cut short", ED25519.slice(0, -8)],
    ["no blob", "ssh-ed25519"],
    ["two lines", `${ED25519}\n${ED25519}`],
    ["a private key", "-----BEGIN OPENSSH PRIVATE KEY-----"],
  ] as const) {
    expectError(await create({ data: base64(text) }), 400, /^data: /, { label: what });
  }
});

test("rejects a new DSA key, with the types of keys with which clients can log in", async () => {
  expectError(
    await create({ data: base64(DSA_KEY) }),
    400,
    /^data: clients cannot log in with a key of the type ssh-dss; use one of ssh-ed25519, ssh-rsa, /,
  );
  expect((await ana.call("getPublicKeys")).body).toEqual([]);
});

test("lists, changes and deletes a DSA key that an earlier version stored", async () => {
  await create();
  await app.services.db.publicKey.updateMany({
    data: { fingerprint: DSA_FINGERPRINT, data: base64(`${DSA_KEY}\n`) },
  });
  const params = { fingerprint: DSA_FINGERPRINT };
  expect((await ana.call("getPublicKeys")).body).toMatchObject([params]);
  const settings = { name: "old", username: ".*", filter: { hostname: ".*" } };
  expect(await ana.call("updatePublicKey", { params, body: settings })).toMatchObject({
    status: 200,
    body: { name: "old" },
  });
  expect((await ana.call("deletePublicKey", { params })).status).toBe(200);
});

test("rejects wrong fields", async () => {
  for (const [more, status] of [
    [{ filter: {} }, 400],
    [{ filter: { hostname: ".*", tags: ["edge"] } }, 400],
    [{ filter: { hostname: "(" } }, 400],
    [{ filter: { tags: [] } }, 400],
    [{ filter: { tags: ["edge", "edge"] } }, 400],
    [{ filter: { tags: ["unknown"] } }, 404],
    [{ filter: { tags: ["core", "edge"] } }, 200],
    [{ username: "" }, 400],
    [{ name: "" }, 400],
    [{ data: "" }, 400],
    [{ data: "***" }, 400],
  ] as const) {
    expect((await create(more)).status, JSON.stringify(more)).toBe(status);
  }
});

test("replaces name, pattern and filter in an update", async () => {
  await create();
  const params = { fingerprint: FINGERPRINT };
  const update = (body: object) => ana.call("updatePublicKey", { params, body });
  const tagged = await update({
    name: "n",
    username: "u",
    filter: { tags: ["core", "edge"] },
    data: "ignored",
  });
  expect(tagged.body).toMatchObject({ name: "n", username: "u", data: base64(`${ED25519}\n`) });
  expect(tagged.body.filter).toEqual({ tags: ["core", "edge"] });
  const named = await update({ name: "n", username: "u", filter: { hostname: "^gate" } });
  expect(named.body.filter).toEqual({ hostname: "^gate" });
  expect(await app.services.db.publicKeyTag.count()).toBe(0);
  expect((await update({ name: "n", username: "u", filter: { tags: ["unknown"] } })).status).toBe(404);
  expect((await update({ name: "n" })).status).toBe(400);
});

test("creates one of several concurrent equal keys", async () => {
  expect(await statusesOf([create(), create(), create()])).toEqual([200, 409, 409]);
});

test("lists keys oldest first, and allows the same key in two namespaces", async () => {
  await create();
  const eve = await app.user("eve", "eves");
  expect((await eve.call("createPublicKey", { body: PUBLIC_KEY })).status).toBe(200);
  app.pass(1);
  await create({ name: "second", data: base64(line("ssh-ed25519", "ssh-ed25519", Buffer.alloc(32, 7))) });
  const { body: list, headers } = await ana.call("getPublicKeys");
  expect(valuesOf(list, "name")).toEqual(["laptop", "second"]);
  expect(headers.get("x-total-count")).toBe("2");
  const params = { fingerprint: FINGERPRINT };
  expect((await ana.call("deletePublicKey", { params })).status).toBe(200);
  expect((await ana.call("deletePublicKey", { params })).status).toBe(404);
  expect((await eve.call("getPublicKeys")).body).toHaveLength(1);
});

test("lists the address of an owner who is no longer a member, only for administrators", async () => {
  const [bob, carla] = [await app.user("bob"), await app.user("carla")];
  const params = { tenant: ana.tenant };
  for (const [user, role] of [
    [bob, "administrator"],
    [carla, "operator"],
  ] as const) {
    await ana.call("inviteMember", { params, body: { email: user.email, role } });
  }
  await create({ data: base64(ED25519), owner: bob.id });
  const tokenOf = async (user: typeof bob) =>
    (await user.call("getNamespaceToken", { params })).body.token as string;
  const listed = async (token?: string) => {
    const call = token === undefined ? ana.call("getPublicKeys") : app.call("getPublicKeys", { token });
    return (await call).body[0];
  };
  const operator = await tokenOf(carla);
  expect(await listed()).toMatchObject({ owner: bob.id });
  expect(await listed()).not.toHaveProperty("owner_email");
  await ana.call("removeMember", { params: { ...params, uid: bob.id } });
  expect(await listed()).toMatchObject({ owner: bob.id, owner_email: bob.email });
  expect(await listed(operator)).toMatchObject({ owner: bob.id });
  expect(await listed(operator)).not.toHaveProperty("owner_email");
  await ana.call("inviteMember", { params, body: { email: bob.email, role: "observer" } });
  expect(await listed()).not.toHaveProperty("owner_email");
});
