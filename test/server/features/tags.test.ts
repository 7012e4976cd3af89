import { beforeEach, expect, test } from "vitest";
import { expectError } from "../http/answers.ts";
import { withAppAndUser } from "../http/appOfTest.ts";
import { DENY_RULE, enroll, PUBLIC_KEY } from "../http/testApp.ts";

let uid: string;
const { app, ana } = withAppAndUser();
beforeEach(async () => {
  ({ uid } = await enroll(app, ana.tenant, "00:00:00:00:00:01"));
});

const add = async (tag: unknown) =>
  (await ana.call("createDeviceTag", { params: { uid }, body: { tag } })).status;
const replace = async (tags: unknown) =>
  (await ana.call("updateDeviceTags", { params: { uid }, body: { tags } })).status;
const remove = async (tag: string) => (await ana.call("deleteDeviceTag", { params: { uid, tag } })).status;
const tags = async () => (await ana.call("getDevice", { params: { uid } })).body.tags;
const rename = async (tag: string, to: string) =>
  (await ana.call("renameTag", { params: { tag }, body: { tag: to } })).status;
const erase = (tag: string) => ana.call("deleteTag", { params: { tag } });
const key = (filter: object) => ana.call("createPublicKey", { body: { ...PUBLIC_KEY, filter } });
const rule = (filter: object) => ana.call("createFirewallRule", { body: { ...DENY_RULE, filter } });
const filterOfRule = async () => (await ana.call("getFirewallRules")).body[0].filter;

test("keep their order on a device, three at most", async () => {
  expect([await add("zulu"), await add("alpha"), await add("mike")]).toEqual([200, 200, 200]);
  expect(await tags()).toEqual(["zulu", "alpha", "mike"]);
  expect(await add("alpha")).toBe(409);
  expect(await add("more")).toBe(403);
  expect([await remove("alpha"), await remove("alpha")]).toEqual([200, 404]);
  expect(await add("alpha")).toBe(200);
  expect(await tags()).toEqual(["zulu", "mike", "alpha"]);
  expect(await replace(["beta", "alpha"])).toBe(200);
  expect(await tags()).toEqual(["beta", "alpha"]);
});

test("are one to three different texts, each with at least three letters or digits", async () => {
  for (const list of [[], ["ab"], ["a-b"], ["abc", "abc"], ["abc", "abd", "abe", "abf"], ["é€é"]]) {
    expect(await replace(list), String(list)).toBe(400);
    if (list.length === 1) expect(await add(list[0])).toBe(400);
  }
});

test("are limited to three with concurrent additions", async () => {
  const statuses = await Promise.all(["tag1", "tag2", "tag3", "tag4", "tag5"].map(add));
  expect(statuses.sort()).toEqual([200, 200, 200, 403, 403]);
  expect(await tags()).toHaveLength(3);
});

test("are listed once for devices and filters, in order", async () => {
  await replace(["zulu", "alpha"]);
  await key({ tags: ["alpha"] });
  await rule({ tags: ["zulu", "alpha"] });
  // Removes the tag `zulu` from the device. Afterwards, only the rule's filter contains this tag.
  await replace(["alpha"]);
  const { body, headers } = await ana.call("getTags");
  expect([body, headers.get("x-total-count")]).toEqual([["alpha", "zulu"], "2"]);
});

test("are renamed on devices and filters together", async () => {
  await replace(["edge", "core"]);
  const created = await key({ tags: ["core", "edge"] });
  expect(created.status).toBe(200);
  expect((await rule({ tags: ["edge"] })).status).toBe(200);
  expect(await rename("nowhere", "other")).toBe(404);
  expect(await rename("edge", "core")).toBe(409);
  expect(await rename("edge", "rim")).toBe(200);
  expect(await tags()).toEqual(["rim", "core"]);
  const { body } = await ana.call("getPublicKeys");
  expect(body[0].filter).toEqual({ tags: ["core", "rim"] });
  expect(await filterOfRule()).toEqual({ tags: ["rim"] });
  const eve = await app.user("eve", "eves");
  const other = await enroll(app, eve.tenant, "00:00:00:00:00:02");
  await eve.call("updateDeviceTags", { params: { uid: other.uid }, body: { tags: ["rim"] } });
  expect(await rename("rim", "edge")).toBe(200);
  expect((await eve.call("getTags")).body).toEqual(["rim"]);
});

test("are deleted from all objects, unless a filter would lose its last tag", async () => {
  await replace(["edge", "core"]);
  await key({ tags: ["core", "edge"] });
  await rule({ tags: ["edge", "core"] });
  expect((await erase("edge")).status).toBe(200);
  expect(await filterOfRule()).toEqual({ tags: ["core"] });
  expect((await erase("edge")).status).toBe(404);
  expectError(await erase("core"), 400, /"laptop"/);
  expect(await tags()).toEqual(["core"]);
});

test("are kept if the filter of a firewall rule would lose its last tag; the message contains the rule", async () => {
  await replace(["edge", "core"]);
  await key({ tags: ["core", "edge"] });
  const { id } = (await rule({ tags: ["edge"] })).body;
  expectError(
    await erase("edge"),
    400,
    `tag: the filter of the firewall rule ${id} has no other tag; add another tag to the filter first`,
  );
  expect(await tags()).toEqual(["edge", "core"]);
  expect(await filterOfRule()).toEqual({ tags: ["edge"] });
});
