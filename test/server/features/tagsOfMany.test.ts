import { setImmediate as nextTurn } from "node:timers/promises";
import { beforeEach, expect, test } from "vitest";
import { removeDeletedTags, removeUnusedTags } from "../../../server/features/tags/tagUpkeep.ts";
import { insertDevices, uidOfMany } from "../db/manyDevices.ts";
import { withAppAndUser, withInternalApp } from "../http/appOfTest.ts";
import { replacing } from "../http/fixtures.ts";
import { DENY_RULE, encodeFilter, enroll, PUBLIC_KEY, property } from "../http/testApp.ts";

const DEVICES = 600;
/** Maximum number of rows that the upkeep of tags deletes in one statement. */
const BATCH = 250;

const { app, ana } = withAppAndUser();
const internal = withInternalApp(app);

/** Gives a tag to all devices of the namespace, as if each device had received the tag by a request. */
async function tagAll(tag: string): Promise<void> {
  const { db } = app.services;
  await db.tag.create({ data: { id: `id of ${tag}`, tenantId: ana.tenant, name: tag } });
  const devices = await db.device.findMany({ select: { uid: true } });
  await db.deviceTagUse.createMany({
    data: devices.map(({ uid }) => ({
      deviceUid: uid,
      tenantId: ana.tenant,
      tagId: `id of ${tag}`,
      position: 0,
    })),
  });
}

beforeEach(async () => {
  await insertDevices(app.services.db, ana.tenant, [0, DEVICES]);
  await tagAll("edge");
});

const one = uidOfMany(1);
const other = uidOfMany(2);
const tag = async (uid: string, ...tags: string[]) =>
  (await ana.call("updateDeviceTags", { params: { uid }, body: { tags } })).status;
const tagsOf = async (uid: string) => (await ana.call("getDevice", { params: { uid } })).body.tags;
const rename = async (from: string, to: string) =>
  (await ana.call("renameTag", { params: { tag: from }, body: { tag: to } })).status;
const erase = async (name: string) => (await ana.call("deleteTag", { params: { tag: name } })).status;
const known = async () => (await ana.call("getTags")).body;
const uses = () => app.services.db.deviceTagUse.count();

/** Returns the number of devices in the list that have the tag. */
async function listed(name: string): Promise<number> {
  const filter = encodeFilter([property("tags", "contains", [name])]);
  const { headers } = await ana.call("getDevices", { query: { filter, per_page: 1 } });
  return Number(headers.get("x-total-count"));
}

const isRemoved = (n: number) => n % 7 === 0;
const LISTED = Array.from({ length: DEVICES }, (_, n) => n).filter((n) => !isRemoved(n)).length;

/** Returns all rows of the tables that store tags. */
async function stored() {
  const { db } = app.services;
  return {
    tags: await db.tag.findMany({ orderBy: { id: "asc" } }),
    ofDevices: await db.deviceTagUse.findMany({ orderBy: [{ deviceUid: "asc" }, { tagId: "asc" }] }),
    ofKeys: await db.publicKeyTagUse.findMany(),
    ofRules: await db.firewallRuleTagUse.findMany(),
  };
}

test("a rename and a deletion change one row, however many devices have the tag", {
  tags: ["long"],
}, async () => {
  await tag(one, "edge", "core");
  await ana.call("createPublicKey", { body: { ...PUBLIC_KEY, filter: { tags: ["edge", "core"] } } });
  await ana.call("createFirewallRule", { body: { ...DENY_RULE, filter: { tags: ["edge", "core"] } } });
  const before = await stored();
  const changedTo = (change: object) => ({
    ...before,
    tags: before.tags.map((row) => (row.name === "edge" ? { ...row, ...change } : row)),
  });
  expect(await rename("edge", "rim")).toBe(200);
  expect(await stored()).toEqual(changedTo({ name: "rim" }));
  expect([await listed("edge"), await listed("rim")]).toEqual([0, LISTED]);
  expect(await erase("rim")).toBe(200);
  expect(await stored()).toEqual(changedTo({ name: "rim", tenantId: null }));
});

test("no request sees a deleted tag, before and after its rows are removed", { tags: ["long"] }, async () => {
  await tag(one, "edge", "core");
  const { body: key } = await ana.call("createPublicKey", {
    body: { ...PUBLIC_KEY, username: "^root$", filter: { tags: ["edge", "core"] } },
  });
  await ana.call("createFirewallRule", { body: { ...DENY_RULE, filter: { tags: ["core", "edge"] } } });
  expect(await erase("edge")).toBe(200);
  const check = async () => {
    expect(await known()).toEqual(["core"]);
    expect([await tagsOf(one), await tagsOf(other)]).toEqual([["core"], []]);
    expect([await listed("edge"), await listed("core")]).toEqual([0, 1]);
    expect((await ana.call("getPublicKeys")).body[0].filter).toEqual({ tags: ["core"] });
    expect((await ana.call("getFirewallRules")).body[0].filter).toEqual({ tags: ["core"] });
    expect([await erase("edge"), await rename("edge", "rim")]).toEqual([404, 404]);
    const refused = await ana.call("createFirewallRule", {
      body: { ...DENY_RULE, filter: { tags: ["edge"] } },
    });
    expect(refused.status).toBe(404);
    const denies = async (name: string) => {
      const query = { domain: "lab", name, username: "root", ip_address: "10.0.0.7" };
      return (await internal.call("evaluateFirewall", { query })).status === 403;
    };
    expect([await denies("host-1"), await denies("host-2")]).toEqual([true, false]);
    const { body } = await internal.call("evaluatePublicKey", {
      params: { fingerprint: key.fingerprint, username: "root" },
      body: { tenant_id: ana.tenant, name: "host-2", tags: ["edge"] },
    });
    expect(body).toBe(false);
  };
  await check();
  await removeDeletedTags(app.services);
  await check();
  expect([await uses(), await app.services.db.tag.count()]).toEqual([1, 1]);
});

test("a tag with the name of a deleted tag is another tag", async () => {
  expect(await erase("edge")).toBe(200);
  expect(await tag(one, "edge")).toBe(200);
  const check = async () => {
    expect([await tagsOf(one), await tagsOf(other), await listed("edge")]).toEqual([["edge"], [], 1]);
  };
  await check();
  await removeDeletedTags(app.services);
  await check();
  expect(await uses()).toBe(1);
});

test("the rows of a deleted tag are removed in batches, and other requests run between two batches", async () => {
  expect(await erase("edge")).toBe(200);
  const { db } = app.services;
  const events: string[] = [];
  const statement = async (...given: unknown[]) => {
    const before = await uses();
    await Reflect.apply(db.$executeRaw, db, given);
    const removed = before - (await uses());
    events.push("statement");
    expect(removed).toBeLessThanOrEqual(BATCH);
    return removed;
  };
  let isRunning = true;
  const others = (async () => {
    while (isRunning) {
      await nextTurn();
      if (events.at(-1) !== "other") events.push("other");
    }
  })();
  await removeDeletedTags({ db: replacing(db, { $executeRaw: statement }) });
  isRunning = false;
  await others;
  expect(await uses()).toBe(0);
  const statements = events.filter((event) => event === "statement").length;
  expect(statements).toBeGreaterThan(DEVICES / BATCH);
  // No statement follows another statement directly.
  expect(events.join()).not.toContain("statement,statement");
});

test("an interrupted removal continues with the next run", async () => {
  expect(await erase("edge")).toBe(200);
  const { db } = app.services;
  let statements = 0;
  const statement = (...given: unknown[]) => {
    statements += 1;
    if (statements > 2) throw new Error("interrupted");
    return Reflect.apply(db.$executeRaw, db, given);
  };
  const failing = replacing(db, { $executeRaw: statement });
  await expect(removeDeletedTags({ db: failing })).rejects.toThrow("interrupted");
  const left = await uses();
  expect(left).toBe(DEVICES - 2 * BATCH);
  expect([await known(), await tagsOf(one), await listed("edge")]).toEqual([[], [], 0]);
  await removeDeletedTags(app.services);
  expect([await uses(), await app.services.db.tag.count()]).toEqual([0, 0]);
});

test("a refused deletion changes nothing", async () => {
  await ana.call("createFirewallRule", { body: { ...DENY_RULE, filter: { tags: ["edge"] } } });
  const before = await stored();
  expect(await erase("edge")).toBe(400);
  expect(await stored()).toEqual(before);
});

test("only the rows of unused tags are removed, and a tag can get the name of an unused tag", async () => {
  const names = async () =>
    (await app.services.db.tag.findMany({ orderBy: { name: "asc" } })).map(({ name }) => name);
  for (const name of ["spare", "core", "rim"]) await tag(one, name);
  expect(await names()).toEqual(["core", "edge", "rim", "spare"]);
  expect(await known()).toEqual(["edge", "rim"]);
  expect(await rename("edge", "spare")).toBe(200);
  expect([await known(), await listed("spare")]).toEqual([["rim", "spare"], LISTED - 1]);
  await removeUnusedTags(app.services);
  expect(await names()).toEqual(["rim", "spare"]);
});

test("the tags of devices can change during a rename and a deletion", { tags: ["long"] }, async () => {
  const uids = Array.from({ length: 40 }, (_, n) => n)
    .filter((n) => !isRemoved(n))
    .map(uidOfMany);
  const [renamed, ...tagged] = await Promise.all([
    rename("edge", "rim"),
    ...uids.map((uid) => tag(uid, "edge", "core")),
  ]);
  expect([renamed, ...new Set(tagged)]).toEqual([200, 200]);
  for (const uid of uids)
    expect([
      ["edge", "core"],
      ["rim", "core"],
    ]).toContainEqual(await tagsOf(uid));
  const [erased, ...retagged] = await Promise.all([erase("rim"), ...uids.map((uid) => tag(uid, "rim"))]);
  expect([erased, ...new Set(retagged)]).toEqual([200, 200]);
  for (const uid of uids) expect([["rim"], []]).toContainEqual(await tagsOf(uid));
});

test("the key of a request for a deleted tag can be used again", async () => {
  const { uid } = await enroll(app, ana.tenant, "00:00:00:00:00:01");
  const create = async (device: string, name: string) =>
    (
      await ana.call("createDeviceTag", {
        params: { uid: device },
        body: { tag: name },
        headers: { "idempotency-key": "key" },
      })
    ).status;
  expect([await create(uid, "core"), await create(one, "core")]).toEqual([200, 409]);
  expect(await erase("core")).toBe(200);
  expect(await create(one, "core")).toBe(200);
  expect([await tagsOf(uid), await tagsOf(one)]).toEqual([[], ["edge", "core"]]);
});

const PROGRAM = { project: "access", stack: "prod", resource: "all", at: "2026-01-02T03:04:05.678Z" };
const DECLARATION = JSON.stringify(PROGRAM);

test("the declaration of a device's tags ends with its last tag", async () => {
  const declared = (uid: string) =>
    app.services.db.device.update({ where: { uid }, data: { tagsDeclaredBy: DECLARATION } });
  const declarer = async (uid: string) =>
    (await ana.call("getDevice", { params: { uid } })).body.tags_declared_by;
  await tag(one, "edge", "core");
  for (const uid of [one, other]) await declared(uid);
  expect([await declarer(one), await declarer(other)]).toEqual([PROGRAM, PROGRAM]);
  expect(await erase("edge")).toBe(200);
  expect([await declarer(one), await declarer(other)]).toEqual([PROGRAM, undefined]);
  // A tag that no program declares does not bring the earlier declaration back.
  expect(await tag(other, "rim")).toBe(200);
  expect(await declarer(other)).toBeUndefined();
});
