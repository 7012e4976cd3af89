import { describe, expect, test } from "vitest";
import { deviceUid } from "../../../server/features/devices/authDevice.ts";
import { testApp, withAppAndUser } from "../http/appOfTest.ts";
import { enroll, enrollProven, reportOf, valuesOf } from "../http/testApp.ts";

const { app, ana } = withAppAndUser();

const on = (uid: string, body?: unknown) => ({ params: { uid }, ...(body !== undefined && { body }) });
const get = async (uid: string) => (await ana.call("getDevice", on(uid))).body;
const accept = async (uid: string) => (await ana.call("acceptDevice", on(uid))).status;
const setStatus = async (uid: string, status: string) =>
  (await ana.call("updateDeviceStatus", { params: { uid, status } })).status;
const device = async (mac: string, hostname?: string, more: object = {}) =>
  (await enroll(app, ana.tenant, mac, { ...(hostname && { hostname }), ...more })).uid as string;

test("derives the uid of the rules' check value", () => {
  expect(
    deviceUid({
      mac: "aa:bb:cc:dd:ee:ff",
      publicKey: "-----BEGIN RSA PUBLIC KEY-----\nAAAA\n-----END RSA PUBLIC KEY-----\n",
      tenantId: "00000000-0000-4000-0000-000000000000",
    }),
  ).toBe("cc490cbc32951e76cb583896ee180e5d7c61b37865bfb171a9713a8f2894e7f0");
});

describe("an agent", () => {
  test("enrolls as pending, and reports without changing decisions", async () => {
    const first = await enroll(app, ana.tenant, "AA:bb:cc:dd:ee:01");
    expect(first).toMatchObject({ name: "aa-bb-cc-dd-ee-01", namespace: "lab" });
    expect(first.token.split(".")).toHaveLength(3);
    const { uid } = first;
    expect(await get(uid)).toMatchObject({
      status: "pending",
      online: true,
      acceptable: true,
      tags: [],
      remote_addr: "127.0.0.1",
    });
    await accept(uid);
    await ana.call("renameDevice", on(uid, { name: "Gate-1" }));
    await ana.call("updateDeviceTags", on(uid, { tags: ["edge"] }));
    const before = await get(uid);
    app.pass(10);
    const again = await enroll(app, ana.tenant, "AA:bb:cc:dd:ee:01", {
      hostname: "other",
      info: { id: "arch", pretty_name: "Arch", version: "v1", arch: "arm64", platform: "native" },
    });
    expect([again.uid, again.name]).toEqual([uid, "gate-1"]);
    const after = await get(uid);
    expect(after).toEqual({ ...before, last_seen: after.last_seen, info: { ...after.info, id: "arch" } });
    expect(Date.parse(after.last_seen) - Date.parse(before.last_seen)).toBeGreaterThanOrEqual(10_000);
  });

  test("may omit host name or identity, but not both, and has no dot in its name", async () => {
    expect((await get(await device("00:00:00:00:00:01", "Host_A"))).name).toBe("host_a");
    expect((await get(await device("", "only-host", { identity: null }))).identity).toEqual({ mac: "" });
    const bad = async (more: object) =>
      (await app.call("authDevice", { body: { ...reportOf(ana.tenant, ""), hostname: undefined, ...more } }))
        .status;
    expect(await bad({})).toBe(400);
    expect(await bad({ hostname: "a.b" })).toBe(400);
    expect(await bad({ hostname: "a", tenant_id: undefined })).toBe(400);
    expect(await bad({ hostname: "a", tenant_id: "00000000-0000-4000-8000-000000000000" })).toBe(404);
    expect(await bad({ hostname: "a", sessions: null })).toBe(200);
  });

  test("has a public key of at most 4096 characters", async () => {
    const status = async (length: number) => {
      const body = reportOf(ana.tenant, "h", { public_key: "k".repeat(length) });
      return (await app.call("authDevice", { body })).status;
    };
    expect([await status(4096), await status(4097)]).toEqual([200, 400]);
  });

  test("has the address of its request, independently of its headers", async () => {
    const body = reportOf(ana.tenant, "h");
    const { uid } = (await app.call("authDevice", { body, headers: { "x-real-ip": "203.0.113.7" } })).body;
    expect((await get(uid)).remote_addr).toBe("127.0.0.1");
  });

  test("is online for two minutes after a report, unless marked offline", async () => {
    app.stopClock();
    const uid = await device("00:00:00:00:00:01");
    app.pass(119);
    expect((await get(uid)).online).toBe(true);
    app.pass(2);
    expect((await get(uid)).online).toBe(false);
    await device("00:00:00:00:00:01");
    await app.services.heartbeats.flush();
    expect((await get(uid)).online).toBe(true);
    await app.services.db.device.update({ where: { uid }, data: { offline: true } });
    expect((await get(uid)).online).toBe(false);
    await device("00:00:00:00:00:01");
    expect((await get(uid)).online).toBe(true);
  });
});

describe("the status", () => {
  test("changes as the rules allow", async () => {
    const uid = await device("00:00:00:00:00:01");
    expect(await setStatus(uid, "unused")).toBe(400);
    expect(await setStatus(uid, "nonsense")).toBe(400);
    expect(await setStatus(uid, "pending")).toBe(200);
    expect(await setStatus(uid, "reject")).toBe(200);
    expect((await get(uid)).status).toBe("rejected");
    expect(await setStatus(uid, "accept")).toBe(200);
    const accepted = await get(uid);
    expect(accepted).toMatchObject({ status: "accepted", acceptable: false });
    expect(accepted.status_update_at).toBe(accepted.status_updated_at);
    for (const status of ["reject", "pending", "unused"]) expect(await setStatus(uid, status)).toBe(400);
    app.pass(60);
    expect(await accept(uid)).toBe(200);
    expect((await get(uid)).status_update_at).toBe(accepted.status_update_at);
    expect(await accept("0".repeat(64))).toBe(404);
  });

  test("accept: rejects a used name with 409", async () => {
    const [one, two] = [await device("00:00:00:00:00:01", "gate"), await device("00:00:00:00:00:02", "gate")];
    expect([await accept(one), await accept(two)]).toEqual([200, 409]);
  });

  test("accept: a machine with a new key adopts its former device's name, without a limit", async () => {
    await app.services.db.namespace.update({ where: { tenantId: ana.tenant }, data: { maxDevices: 1 } });
    const mac = "00:00:00:00:00:01";
    const former = await device(mac, "gate");
    await accept(former);
    await ana.call("renameDevice", on(former, { name: "north" }));
    const newer = await device(mac, "gate", { public_key: "another" });
    expect(newer).not.toBe(former);
    expect(await accept(newer)).toBe(200);
    expect((await get(newer)).name).toBe("north");
    expect((await ana.call("getDevice", on(former))).status).toBe(404);
  });

  test("accept: rejects the new key of a machine if another machine has its present name", async () => {
    const mac = "00:00:00:00:00:01";
    const former = await device(mac, "north");
    await accept(former);
    await accept(await device("00:00:00:00:00:02", "gate"));
    expect(await accept(await device(mac, "gate", { public_key: "another" }))).toBe(409);
    expect((await get(former)).status).toBe("accepted");
  });

  test("accept: devices without a MAC are not the same machine", async () => {
    const one = await device("", "one", { identity: null });
    const two = await device("", "two", { identity: { mac: "" }, public_key: "another" });
    expect([await accept(one), await accept(two)]).toEqual([200, 200]);
    expect((await get(one)).status).toBe("accepted");
  });

  test("accept: enforces max_devices, even for concurrent requests", async () => {
    await app.services.db.namespace.update({ where: { tenantId: ana.tenant }, data: { maxDevices: 2 } });
    const uids = await Promise.all([1, 2, 3, 4, 5].map((n) => device(`00:00:00:00:00:0${n}`)));
    const statuses = await Promise.all(uids.map(accept));
    expect(statuses.sort()).toEqual([200, 200, 403, 403, 403]);
    const { body } = await ana.call("getDevices");
    expect(valuesOf(body, "acceptable")).toEqual(Array(5).fill(false));
  });

  test("cloud: the token of a removed device is void", async () => {
    const cloud = await testApp({ edition: "cloud" });
    const user = await cloud.user("zoe", "zoes");
    const { uid, token } = await enrollProven(cloud, user.tenant, "00:00:00:00:00:01");
    const offline = async () => (await cloud.call("offlineDevice", { token, params: { uid } })).status;
    await user.call("acceptDevice", { params: { uid } });
    expect(await offline()).toBe(200);
    expect((await user.call("deleteDevice", { params: { uid } })).status).toBe(200);
    const { status } = await cloud.services.db.device.findUniqueOrThrow({ where: { uid } });
    expect(status).toBe("removed");
    expect(await offline()).toBe(401);
  });
});

describe("names", () => {
  test("are unique in the namespace, stored in lower case", async () => {
    const [one, two] = [await device("00:00:00:00:00:01", "one"), await device("00:00:00:00:00:02", "two")];
    const put = async (uid: string, body: unknown) => (await ana.call("updateDevice", on(uid, body))).status;
    const patch = async (uid: string, body: unknown) =>
      (await ana.call("renameDevice", on(uid, body))).status;
    expect(await put(one, { name: "TWO" })).toBe(409);
    // A PATCH rejects the new name only if an accepted device has it. Pending devices do not count.
    expect(await patch(one, { name: "two" })).toBe(200);
    expect(await patch(one, { name: "one" })).toBe(200);
    await accept(two);
    expect(await patch(one, { name: "two" })).toBe(409);
    expect(await put(one, { name: "ONE" })).toBe(200);
    expect(await put(one, { public_url: true })).toBe(200);
    expect(await put(one, {})).toBe(200);
    expect(await get(one)).toMatchObject({ name: "one", public_url: true });
    expect(await put("0".repeat(64), {})).toBe(404);
    const elsewhere = await app.user("eve", "eves");
    const other = (await enroll(app, elsewhere.tenant, "00:00:00:00:00:03")).uid;
    expect((await elsewhere.call("updateDevice", on(other, { name: "two" }))).status).toBe(200);
  });
});

test("deletes a device", async () => {
  const uid = await device("00:00:00:00:00:01");
  expect((await ana.call("deleteDevice", on(uid))).status).toBe(200);
  expect((await ana.call("deleteDevice", on(uid))).status).toBe(404);
  expect((await ana.call("getDevices")).headers.get("x-total-count")).toBe("0");
});

describe("lists", () => {
  test("sort by the last report by default", async () => {
    for (const n of [2, 1, 3]) {
      await device(`00:00:00:00:00:0${n}`, `host-${n}`);
      app.pass(1);
    }
    const names = async (query = {}) => valuesOf((await ana.call("getDevices", { query })).body, "name");
    expect(await names()).toEqual(["host-3", "host-1", "host-2"]);
    expect(await names({ order_by: "asc" })).toEqual(["host-2", "host-1", "host-3"]);
    expect(await names({ sort_by: "name" })).toEqual(["host-3", "host-2", "host-1"]);
    expect(await names({ sort_by: "nonsense" })).toEqual(["host-3", "host-1", "host-2"]);
    expect(await names({ per_page: -1, page: -1 })).toEqual(["host-3"]);
  });

  test("omit containers, and removed devices by default", async () => {
    await device("00:00:00:00:00:01", "box", { info: { ...reportOf("", "").info, platform: "connector" } });
    const uid = await device("00:00:00:00:00:02");
    await setStatus(uid, "reject");
    const total = async (query = {}) =>
      (await ana.call("getDevices", { query })).headers.get("x-total-count");
    expect([await total(), await total({ status: "rejected" }), await total({ status: "accepted" })]).toEqual(
      ["1", "1", "0"],
    );
  });
});
