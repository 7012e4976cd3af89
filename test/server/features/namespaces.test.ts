import { beforeEach, describe, expect, test } from "vitest";
import { expectError, statusesOf } from "../http/answers.ts";
import { testApp, withAppAndUser } from "../http/appOfTest.ts";
import { enroll, PUBLIC_KEY, type TestUser, valuesOf } from "../http/testApp.ts";

let bob: TestUser;
const { app, ana } = withAppAndUser();
beforeEach(async () => {
  bob = await app.user("bob");
});

const create = (body: unknown, user = ana) => user.call("createNamespace", { body });
/** The path parameters of the namespace `lab`, for users without a token for it. */
const lab = () => ({ tenant: ana.tenant });
const invite = (user: TestUser, role: string, by = ana) =>
  by.call("inviteMember", { params: lab(), body: { email: user.email, role } });
/** Returns a user with a token for the namespace `lab`. */
const inLab = async (user: TestUser): Promise<TestUser> => {
  const { token } = (await user.call("getNamespaceToken", { params: lab() })).body;
  return { ...user, token, tenant: ana.tenant };
};

test("creates a namespace with defaults, and its name in lower case", async () => {
  const { status, body } = await create({ name: "Plant-7" });
  expect(status).toBe(200);
  expect(body).toMatchObject({
    name: "plant-7",
    owner: ana.id,
    settings: { session_record: true, connection_announcement: "" },
    max_devices: -1,
    device_count: 0,
    billing: null,
    type: "team",
    members: [
      { id: ana.id, role: "owner", status: "accepted", expires_at: "0001-01-01T00:00:00Z", email: "" },
    ],
  });
  expect(body.created_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  expect((await create({ name: "PLANT-7" })).status).toBe(409);
  for (const name of ["", "a.b", "-a", "a-", "a_b", "a".repeat(64), "é"]) {
    expect((await create({ name })).status, name).toBe(400);
  }
});

test("accepts a chosen id, once", async () => {
  const tenant = "11111111-2222-3333-4444-555555555555";
  expect((await create({ name: "one", tenant, type: "personal" })).body).toMatchObject({
    tenant_id: tenant,
    type: "personal",
  });
  expect((await create({ name: "two", tenant })).status).toBe(409);
  expect((await create({ name: "three", tenant: "", type: "" })).body.type).toBe("team");
});

test("announces on community instances, and limits devices on cloud instances", async () => {
  for (const [edition, devices, greeting] of [
    ["community", -1, true],
    ["cloud", 3, false],
  ] as const) {
    const other = await testApp({ edition });
    const zoe = await other.user("zoe");
    const { body } = await zoe.call("createNamespace", { body: { name: "zoes" } });
    expect([body.max_devices, body.settings.connection_announcement !== ""]).toEqual([devices, greeting]);
  }
});

test("limits a user's namespaces to max_namespaces, even for concurrent requests", async () => {
  const limit = (maxNamespaces: number) =>
    app.services.db.user.update({ where: { id: bob.id }, data: { maxNamespaces } });
  await limit(0);
  expect((await create({ name: "none" }, bob)).status).toBe(403);
  await limit(2);
  expect(await statusesOf(["b-1", "b-2", "b-3", "b-4"].map((name) => create({ name }, bob)))).toEqual([
    200, 200, 403, 403,
  ]);
});

test("lists the caller's namespaces, or the API key's own", async () => {
  await create({ name: "second" });
  await app.user("eve", "eves");
  const mine = await ana.call("getNamespaces");
  expect(valuesOf(mine.body, "name")).toEqual(["lab", "second"]);
  expect(mine.headers.get("x-total-count")).toBe("2");
  const page = await ana.call("getNamespaces", { query: { per_page: 1, page: 2 } });
  expect(page.body[0].name).toBe("second");
  const key = await ana.call("createApiKey", { body: { name: "key", expires_at: -1 } });
  const own = await app.call("getNamespaces", { apiKey: key.body.id });
  expect(valuesOf(own.body, "name")).toEqual(["lab"]);
});

test("changes only the given fields in an edit", async () => {
  const edit = (body: unknown) => ana.call("editNamespace", { body });
  expect((await edit({ name: "Lab-2", settings: { connection_announcement: "hi" } })).body).toMatchObject({
    name: "lab-2",
    settings: { session_record: true, connection_announcement: "hi" },
  });
  expect((await edit({ settings: { session_record: false } })).body.settings).toEqual({
    session_record: false,
    connection_announcement: "hi",
  });
  expect((await edit({})).body.name).toBe("lab-2");
  expect((await edit({ settings: { connection_announcement: "x".repeat(4097) } })).status).toBe(400);
  const { revision } = (await edit({})).body;
  const own = {
    device_proof: "required",
    session_max_minutes: 480,
    session_idle_minutes: 30,
    session_record_mode: "terminals",
    session_record_megabytes: 5,
    session_record_failure: "end",
    ssh_forwarding: [{ login: "admin", target: "db:5432" }],
  };
  const changed = (await edit({ settings: own })).body;
  expect(changed.settings).toMatchObject({ session_record: false, ...own });
  expect(changed.revision).not.toBe(revision);
  expectError(
    await edit({ settings: { session_max_minutes: 43_201 } }),
    400,
    /settings\.session_max_minutes must /,
  );
  expectError(
    await edit({ settings: { ssh_forwarding: [{ login: "(", target: ".*" }] } }),
    400,
    /settings\.ssh_forwarding\.0\.login must/,
  );
  const defaults = {
    device_proof: "optional",
    session_max_minutes: 0,
    session_idle_minutes: 0,
    session_record_mode: "default",
    session_record_megabytes: 0,
    session_record_failure: "continue",
    ssh_forwarding: [],
  };
  expect((await edit({ settings: defaults })).body).toMatchObject({
    revision,
    settings: { session_record: false, connection_announcement: "hi" },
  });
  await create({ name: "taken" });
  expect((await edit({ name: "TAKEN" })).status).toBe(409);
  const record = await ana.call("setSessionRecord", { body: { session_record: true } });
  expect([record.status, record.body]).toEqual([200, { code: "gatehouse_done" }]);
  expect((await edit({})).body.settings.session_record).toBe(true);
});

test("deletes everything in the namespace", async () => {
  const { uid } = await enroll(app, ana.tenant, "00:00:00:00:00:01");
  await ana.call("createDeviceTag", { params: { uid }, body: { tag: "edge" } });
  await ana.call("createPublicKey", { body: { ...PUBLIC_KEY, filter: { tags: ["edge"] } } });
  const key = await ana.call("createApiKey", { body: { name: "key", expires_at: -1, role: "owner" } });
  await invite(bob, "observer");
  const former = await inLab(bob);
  expect((await app.call("deleteNamespace", { apiKey: key.body.id, params: lab() })).status).toBe(200);
  const { db } = app.services;
  expect([
    await db.namespace.count(),
    await db.member.count(),
    await db.device.count(),
    await db.deviceTag.count(),
    await db.publicKey.count(),
    await db.publicKeyTag.count(),
    await db.apiKey.count(),
  ]).toEqual([0, 0, 0, 0, 0, 0, 0]);
  expect((await app.call("getDevices", { apiKey: key.body.id })).status).toBe(401);
  expect((await former.call("getDevices")).status).toBe(401);
});

describe("members", () => {
  test("are added immediately by e-mail, with roles up to the caller's", async () => {
    const { status, body } = await invite(bob, "administrator");
    expect(status).toBe(200);
    expect(body.members).toMatchObject([
      { id: ana.id, role: "owner", email: ana.email },
      {
        id: bob.id,
        role: "administrator",
        status: "accepted",
        email: bob.email,
        type: "team",
        expires_at: "0001-01-01T00:00:00Z",
      },
    ]);
    expect((await invite(bob, "observer")).status).toBe(409);
    const eve = await app.user("eve");
    expect((await invite(eve, "owner")).status).toBe(403);
    expect((await invite({ ...eve, email: "unknown@x.org" }, "observer")).status).toBe(404);
    const inCapitals = { ...eve, email: eve.email.toUpperCase() };
    expect((await invite(inCapitals, "administrator", await inLab(bob))).status).toBe(200);
  });

  test("include exactly one owner, who cannot be changed or removed", async () => {
    await invite(bob, "administrator");

    const owner = { uid: ana.id };
    for (const by of [ana, await inLab(bob)]) {
      const update = await by.call("updateMember", { params: owner, body: { role: "observer" } });
      const removal = await by.call("removeMember", { params: owner });
      expect([update.status, removal.status]).toEqual([403, 403]);
    }
    const update = (body: object) => ana.call("updateMember", { params: { uid: bob.id }, body });
    expect((await update({ role: "owner" })).status).toBe(403);
    expect((await update({})).status).toBe(200);
    expect((await ana.call("leaveNamespace")).status).toBe(403);
    const owners = await app.services.db.member.count({ where: { tenantId: ana.tenant, role: "owner" } });
    expect(owners).toBe(1);
  });

  test("of the same level can remove each other; the answer is the namespace", async () => {
    const eve = await app.user("eve");
    await invite(bob, "administrator");
    await invite(eve, "administrator");
    const { status, body } = await (await inLab(bob)).call("removeMember", { params: { uid: eve.id } });
    expect([status, body.members.length]).toEqual([200, 2]);
    expect((await ana.call("removeMember", { params: { uid: eve.id } })).status).toBe(404);
  });

  test("can leave: a token for this namespace is replaced, and a token for another namespace stays valid", async () => {
    await invite(bob, "observer");
    const away = await bob.call("leaveNamespace", { params: lab() });
    expect([away.status, away.text]).toEqual([200, ""]);
    expect((await bob.call("leaveNamespace", { params: lab() })).status).toBe(403);
    await invite(bob, "observer");
    const left = await (await inLab(bob)).call("leaveNamespace");
    expect(left.body).toMatchObject({ user: "bob", tenant: "", role: "" });
  });
});

test("never reuses the id of a deleted namespace, since its agents would enroll with the new owner", async () => {
  const owner = await app.user("leaver", "leavers");
  const params = { tenant: owner.tenant };
  expect((await owner.call("deleteNamespace", { params })).status).toBe(200);
  const taker = await app.user("taker");
  const body = { name: "takers", tenant: owner.tenant };
  expect((await taker.call("createNamespace", { body })).status).toBe(409);
});
