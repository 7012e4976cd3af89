import { expect, test } from "vitest";
import { ruleKey } from "../../../server/features/firewall/rules.ts";
import { testApp, withAppAndUser } from "../http/appOfTest.ts";
import { enroll } from "../http/testApp.ts";

const { app, ana } = withAppAndUser();

const RULE = {
  action: "deny",
  active: true,
  filter: { hostname: ".*" },
  priority: 1,
  source_ip: "^203\\.0\\.113\\.",
  username: ".*",
};
const create = (more: object = {}, token = ana.token) =>
  app.call("createFirewallRule", { token, body: { ...RULE, ...more } });
const get = (id: string) => ana.call("getFirewallRule", { params: { id } });
const update = (id: string, body: unknown) => ana.call("updateFirewallRule", { params: { id }, body });
const remove = async (id: string) => (await ana.call("deleteFirewallRule", { params: { id } })).status;
const list = (query = {}) => ana.call("getFirewallRules", { query });
const tagDevice = async (...tags: string[]) => {
  const { uid } = await enroll(app, ana.tenant, "00:00:00:00:00:01");
  await ana.call("updateDeviceTags", { params: { uid }, body: { tags } });
};

const revision = expect.stringMatching(/^[\w-]{22}$/);

test("returns a rule as it was sent, with a decimal id and its namespace", async () => {
  const { status, body } = await create();
  expect(status).toBe(200);
  expect(body).toEqual({ ...RULE, id: expect.stringMatching(/^[1-9]\d*$/), tenant_id: ana.tenant, revision });
  expect((await get(body.id)).body).toEqual(body);
});

test("rejects a wrong field by its name, and creates no rule", async () => {
  for (const [more, status] of [
    [{ action: "refuse" }, 400],
    [{ action: undefined }, 400],
    [{ active: undefined }, 400],
    [{ active: "yes" }, 422],
    [{ priority: -1 }, 400],
    [{ priority: 1.5 }, 422],
    [{ priority: "1" }, 422],
    [{ priority: 2_147_483_648 }, 400],
    [{ priority: 2_147_483_647 }, 200],
    [{ priority: 0 }, 200],
    [{ source_ip: "" }, 400],
    [{ source_ip: "(" }, 400],
    [{ username: "(?=a)" }, 400],
    [{ username: undefined }, 400],
    [{ filter: {} }, 400],
    [{ filter: { hostname: ".*", tags: ["edge"] } }, 400],
    [{ filter: { tags: ["edge", "edge"] } }, 400],
    [{ filter: { tags: ["unknown"] } }, 404],
  ] as const) {
    const answer = await create(more);
    expect(answer.status, JSON.stringify(more)).toBe(status);
    if (status === 200) expect(await remove(answer.body.id)).toBe(200);
    else expect(answer.body.message).toContain(Object.keys(more)[0]);
    expect((await list()).body).toEqual([]);
  }
});

test("lists by priority, then by age, and counts all", async () => {
  const ids = [];
  for (const priority of [5, 1, 5, 0]) ids.push((await create({ priority })).body.id);
  const [five, one, fiveToo, zero] = ids;
  const listed = (body: { id: string }[]) => body.map((rule) => rule.id);
  expect(listed((await list()).body)).toEqual([zero, one, five, fiveToo]);
  const second = await list({ page: 2, per_page: 3 });
  expect([listed(second.body), second.headers.get("x-total-count")]).toEqual([[fiveToo], "4"]);
});

test("replaces all of a rule but its id in an update", async () => {
  await tagDevice("edge", "core");
  const { id } = (await create()).body;
  const next = {
    action: "allow",
    active: false,
    filter: { tags: ["core", "edge"] },
    priority: 7,
    source_ip: "^10\\.",
    username: "^root$",
  };
  expect((await update(id, next)).body).toEqual({ ...next, id, tenant_id: ana.tenant, revision });
  expect((await get(id)).body).toMatchObject(next);
  const named = { ...next, filter: { hostname: "^gate" } };
  expect((await update(id, named)).body.filter).toEqual({ hostname: "^gate" });
  expect(await app.services.db.firewallRuleTag.count()).toBe(0);
  expect((await update(id, { ...next, filter: { tags: ["unknown"] } })).status).toBe(404);
  expect((await update(id, { action: "deny" })).status).toBe(400);
  expect((await get(id)).body).toMatchObject(named);
});

test("never reuses a deleted rule's id", async () => {
  const ids = [];
  for (let n = 0; n < 3; n += 1) {
    const { id } = (await create()).body;
    ids.push(Number(id));
    expect([await remove(id), await remove(id)]).toEqual([200, 404]);
  }
  expect(ids[1]).toBeGreaterThan(ids[0] ?? 0);
  expect(ids[2]).toBeGreaterThan(ids[1] ?? 0);
});

test.each([
  ["not a number", "abc"],
  ["a number with a sign", "-1"],
  ["a number with a leading zero", "01"],
  ["zero", "0"],
  ["an unused number", "4711"],
  ["a number that no rule can have", "9999999999"],
  ["an id of another server, of 24 digits", "683f1c9ea2b4d60012345678"],
  ["a number of 24 digits", "123456789012345678901234"],
])("answers 404 to an id that is %s", async (_, id) => {
  await create();
  expect((await get(id)).status).toBe(404);
  expect((await update(id, RULE)).status).toBe(404);
  expect(await remove(id)).toBe(404);
});

test("rejects an id beyond the column's range before the database, since PostgreSQL would fail", () => {
  expect(ruleKey("t", "2147483647")).toEqual({ tenantId: "t", id: 2_147_483_647 });
  expect(() => ruleKey("t", "2147483648")).toThrow("no such rule");
});

test("rejects a filter with the tags of another namespace", async () => {
  await tagDevice("edge");
  const eve = await app.user("eve", "eves");
  expect((await create({ filter: { tags: ["edge"] } }, eve.token)).status).toBe(404);
});

test("deletes rules with their namespace", async () => {
  await tagDevice("edge");
  await create({ filter: { tags: ["edge"] } });
  await ana.call("deleteNamespace");
  expect(await app.services.db.firewallRule.count()).toBe(0);
  expect(await app.services.db.firewallRuleTag.count()).toBe(0);
});

test("is not part of the community edition", async () => {
  const community = await testApp({ edition: "community" });
  const { token } = await community.user("bob", "bobs");
  const { status } = await community.send("GET", "/api/firewall/rules", {
    headers: { authorization: `Bearer ${token}` },
  });
  expect(status).toBe(404);
});

test("a repeated request, and a change, do not count towards the limit of firewall rules", async () => {
  Object.assign(app.services.settings, { maximumFirewallRules: 2 });
  const request = { body: RULE, headers: { "idempotency-key": "first" } };
  const first = await ana.call("createFirewallRule", request);
  const second = await create();
  const again = await ana.call("createFirewallRule", request);
  expect([again.status, again.body.id]).toEqual([200, first.body.id]);
  expect((await update(second.body.id, { ...RULE, priority: 7 })).status).toBe(200);
  expect((await create()).status).toBe(403);
});
