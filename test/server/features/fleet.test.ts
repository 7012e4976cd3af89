import { createHmac } from "node:crypto";
import { describe, expect, test } from "vitest";
import { sealerOf } from "../../../server/secrets/sealer.ts";
import { expectError } from "../http/answers.ts";
import { withAppAndUser } from "../http/appOfTest.ts";
import { enroll, type TestUser } from "../http/testApp.ts";

const { app, ana } = withAppAndUser();

let macs = 0;
const newDevice = async (hostname: string, more: object = {}): Promise<string> => {
  macs += 1;
  const mac = `00:00:00:00:00:${String(macs).padStart(2, "0")}`;
  return (await enroll(app, ana.tenant, mac, { hostname, ...more })).uid;
};
const setStatus = async (uid: string, status: string) => {
  const answer = await ana.call("updateDeviceStatus", { params: { uid, status } });
  expect(answer.status).toBe(200);
};

type Query = Readonly<Record<string, string>>;

describe("resolveDevice", () => {
  const resolve = (query: Query) => ana.call("resolveDevice", { query });

  test("finds by uid and by name in any case, with the answer of getDevice", async () => {
    const uid = await newDevice("gate");
    const single = await ana.call("getDevice", { params: { uid } });
    for (const query of [{ uid }, { hostname: "gate" }, { hostname: "GATE" }] as Query[]) {
      const { status, body, headers } = await resolve(query);
      expect([status, body]).toEqual([200, single.body]);
      expect(headers.get("etag")).toBe(single.headers.get("etag"));
    }
  });

  test("prefers the uid to the name", async () => {
    const uid = await newDevice("one");
    await newDevice("two");
    expect((await resolve({ uid, hostname: "two" })).body.name).toBe("one");
    expect((await resolve({ uid: "0".repeat(64), hostname: "two" })).status).toBe(404);
  });

  test("prefers the accepted device of a name, then the latest one", async () => {
    const first = await newDevice("gate");
    app.pass(1);
    const second = await newDevice("gate");
    expect((await resolve({ hostname: "gate" })).body.uid).toBe(second);
    await setStatus(first, "accept");
    app.pass(1);
    await newDevice("gate");
    expect((await resolve({ hostname: "gate" })).body.uid).toBe(first);
  });

  test.each<[Query]>([[{}], [{ uid: "", hostname: "" }], [{ uid: "abc" }], [{ hostname: "a.b" }]])(
    "rejects %j with 400",
    async (query) => {
      expectError(await resolve(query), 400, /^(uid|hostname)/);
    },
  );

  test("does not find another namespace's device", async () => {
    const uid = await newDevice("gate");
    const eve = await app.user("eve", "eves");
    for (const query of [{ uid }, { hostname: "gate" }] as Query[]) {
      expect((await eve.call("resolveDevice", { query })).status).toBe(404);
    }
  });

  test("does not find a removed device by name", async () => {
    const uid = await newDevice("gate");
    await app.services.db.device.update({ where: { uid }, data: { status: "removed" } });
    expect((await resolve({ hostname: "gate" })).status).toBe(404);
    expect((await resolve({ uid })).body.status).toBe("removed");
  });
});

describe("getStats", () => {
  const stats = async (token = ana.token) => (await app.call("getStats", { token })).body;
  const NONE = {
    registered_devices: 0,
    online_devices: 0,
    pending_devices: 0,
    rejected_devices: 0,
    active_sessions: 0,
  };

  test("returns zeros for an empty namespace", async () => {
    expect(await stats()).toEqual(NONE);
  });

  test("counts by status, containers too, and accepted devices that are online", async () => {
    const connector = { id: "a", pretty_name: "A", version: "v", arch: "amd64", platform: "connector" };
    const old = await newDevice("old");
    app.pass(121);
    const accepted = [
      await newDevice("a1"),
      await newDevice("a2"),
      await newDevice("a3", { info: connector }),
    ];
    for (const uid of [old, ...accepted]) await setStatus(uid, "accept");
    await ana.call("offlineDevice", { params: { uid: accepted[0] ?? "" } });
    await setStatus(await newDevice("r1"), "reject");
    await newDevice("p1");
    await newDevice("p2");
    const removed = await newDevice("removed");
    await app.services.db.device.update({ where: { uid: removed }, data: { status: "removed" } });
    expect(await stats()).toEqual({
      ...NONE,
      registered_devices: 4,
      online_devices: 2,
      pending_devices: 2,
      rejected_devices: 1,
    });
    const eve = await app.user("eve", "eves");
    expect(await stats(eve.token)).toEqual(NONE);
  });
});

describe("getNamespaceSupport", () => {
  const identifierOf = async (user: TestUser) => (await user.call("getNamespaceSupport")).body.identifier;

  test("differs between namespaces, and is stable", async () => {
    const eve = await app.user("eve", "eves");
    const first = await identifierOf(ana);
    expect(first).toMatch(/^[0-9a-f]{64}$/);
    expect(await identifierOf(ana)).toBe(first);
    expect(await identifierOf(eve)).not.toBe(first);
  });

  test("requires the instance's secret", async () => {
    const identifier = await identifierOf(ana);
    expect(identifier).toBe(sealerOf("a secret of the tests").mark(ana.tenant, "namespace support"));
    expect(identifier).not.toBe(sealerOf("another secret").mark(ana.tenant, "namespace support"));
    expect(identifier).not.toBe(sealerOf("a secret of the tests").mark(ana.tenant, "another purpose"));
    expect(identifier).not.toBe(
      createHmac("sha256", "a secret of the tests").update(ana.tenant).digest("hex"),
    );
  });
});
