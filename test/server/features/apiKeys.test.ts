import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { expiryOf } from "../../../server/features/apiKeys/apiKeys.ts";
import { withAppAndUser } from "../http/appOfTest.ts";
import { PASSWORD, valuesOf } from "../http/testApp.ts";

const { app, ana } = withAppAndUser();

const create = (more: object = {}, token = ana.token) =>
  app.call("createApiKey", { token, body: { name: "ci-key", expires_at: 30, ...more } });
const update = async (key: string, body: unknown, token = ana.token) =>
  (await app.call("updateApiKey", { token, params: { key }, body })).status;
const works = async (apiKey: string) => (await app.call("getDevices", { apiKey })).status === 200;

test("returns the secret once, and stores its digest", async () => {
  const key = "c2a1f0de-7a51-4f2e-9c0b-2f7d5b8e4a10";
  const { body } = await create({ key, role: "" });
  expect(body).toMatchObject({
    id: key,
    name: "ci-key",
    role: "owner",
    tenant_id: ana.tenant,
    created_by: ana.id,
    user_id: ana.id,
  });
  const row = await app.services.db.apiKey.findFirstOrThrow();
  expect(row.digest).toBe(createHash("sha256").update(key).digest("hex"));
  expect(Object.values(row).join()).not.toContain(key);
  const { body: list } = await app.call("listApiKeys", { apiKey: key });
  expect(list[0]).not.toHaveProperty("id");
  expect((await create({ name: "other", key })).status).toBe(409);
  expect((await create()).status).toBe(409);
});

test("rejects wrong fields", async () => {
  for (const [more, status] of [
    [{ name: "ab" }, 400],
    [{ name: "a".repeat(21) }, 400],
    [{ name: "with space" }, 400],
    [{ expires_at: 31 }, 400],
    [{ expires_at: undefined }, 400],
    [{ expires_at: "30" }, 422],
    [{ key: "no-uuid" }, 400],
    [{ role: "king" }, 400],
    [{ role: 1 }, 422],
  ] as const) {
    expect((await create(more)).status, JSON.stringify(more)).toBe(status);
  }
});

test("adds a calendar year for 365 days, and no expiry for -1", () => {
  const now = new Date("2027-03-01T12:00:00.500Z");
  const seconds = (text: string) => Date.parse(text) / 1000;
  expect(expiryOf(30, now)).toBe(seconds("2027-03-31T12:00:00Z"));
  expect(expiryOf(365, now)).toBe(seconds("2028-03-01T12:00:00Z"));
  expect(expiryOf(-1, now)).toBe(-1);
});

test("accepts a key until it expires, is deleted, or loses its role", async () => {
  app.stopClock();
  const { id } = (await create({ role: "administrator" })).body;
  const forever = (await create({ name: "forever", expires_at: -1 })).body.id;
  expect(await works(id)).toBe(true);
  expect(await update("ci-key", { role: "observer" })).toBe(200);
  const edit = await app.call("editNamespace", { apiKey: id, params: { tenant: ana.tenant }, body: {} });
  expect(edit.status).toBe(403);
  app.pass(30 * 24 * 3600 - 1);
  expect(await works(id)).toBe(true);
  app.pass(1);
  expect([await works(id), await works(forever)]).toEqual([false, true]);
  await app.services.db.apiKey.delete({
    where: { tenantId_name: { tenantId: ana.tenant, name: "forever" } },
  });
  expect(await works(forever)).toBe(false);
});

test("stores expiry after 2038 to the second", async () => {
  await create({ expires_at: 365 });
  app.pass(20 * 365 * 24 * 3600);
  // The owner's token has expired, so the owner logs in again.
  const { body: session } = await app.call("login", { body: { username: "ana", password: PASSWORD } });
  const { body } = await create({ name: "later", expires_at: 90 }, session.token);
  expect(body.expires_in).toBe(Math.floor(Date.parse(body.created_at) / 1000) + 90 * 24 * 3600);
  expect(body.expires_in).toBeGreaterThan(2 ** 31);
  const { body: list } = await app.call("listApiKeys", { token: session.token });
  expect(valuesOf(list, "name")).toEqual(["later", "ci-key"]);
  expect(list[0].expires_in).toBe(body.expires_in);
  expect(await works(body.id)).toBe(true);
  app.pass(90 * 24 * 3600 + 1);
  expect(await works(body.id)).toBe(false);
});

test("refuses a role above the caller's own", async () => {
  const bob = await app.user("bob");
  const params = { tenant: ana.tenant };
  await ana.call("inviteMember", { params, body: { email: bob.email, role: "administrator" } });
  const { token } = (await bob.call("getNamespaceToken", { params })).body;
  expect((await create({ role: "owner" }, token)).status).toBe(403);
  expect((await create({}, token)).body.role).toBe("administrator");
  expect(await update("ci-key", { role: "owner" }, token)).toBe(403);
  // An API key stays valid after its creator has been removed from the namespace.
  const { id } = (await create({ name: "stays" }, token)).body;
  await ana.call("removeMember", { params: { ...params, uid: bob.id } });
  expect(await works(id)).toBe(true);
});

test("keeps blank fields in an update, and accepts the key's own name", async () => {
  const { body } = await create({ role: "operator" });
  await create({ name: "second" });
  app.pass(5);
  expect(await update("ci-key", { name: "ci-key", role: "" })).toBe(200);
  expect(await update("ci-key", { name: "second" })).toBe(409);
  expect(await update("ci-key", { name: "third" })).toBe(200);
  expect(await update("ci-key", {})).toBe(404);
  const list = (await ana.call("listApiKeys", { query: { sort_by: "name", order_by: "desc" } })).body;
  expect(valuesOf(list, "name")).toEqual(["third", "second"]);
  expect(list[0].role).toBe("operator");
  expect(Date.parse(list[0].updated_at) - Date.parse(body.updated_at)).toBeGreaterThanOrEqual(5000);
});

test("sorts by expiry by default", async () => {
  for (const [name, expires_at] of [
    ["never", -1],
    ["long", 90],
    ["short", 30],
  ])
    await create({ name, expires_at });
  const names = async (query = {}) => valuesOf((await ana.call("listApiKeys", { query })).body, "name");
  expect(await names()).toEqual(["long", "short", "never"]);
  expect(await names({ order_by: "asc", sort_by: "unknown" })).toEqual(["never", "short", "long"]);
  expect(await names({ sort_by: "name", per_page: 2, page: 2 })).toEqual(["long"]);
});

test("gives concurrently created keys distinct times, so that clients can distinguish them", async () => {
  const created = await Promise.all(
    Array.from({ length: 20 }, (_, index) => create({ name: `key-${index}` })),
  );
  expect(created.map(({ status }) => status)).toEqual(Array(20).fill(200));
  expect(new Set(created.map(({ body }) => body.created_at)).size).toBe(20);
});
