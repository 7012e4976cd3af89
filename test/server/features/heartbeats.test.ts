import { generateKeyPairSync } from "node:crypto";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { PrismaClient } from "../../../server/db/generated/sqlite/client.ts";
import { HEARTBEAT_DELAY, Heartbeats } from "../../../server/features/devices/heartbeats.ts";
import { withAppAndUser } from "../http/appOfTest.ts";
import { enroll } from "../http/testApp.ts";

const MAC = "00:00:00:00:00:01";

const { app, ana } = withAppAndUser();

const report = (more: object = {}, mac = MAC) => enroll(app, ana.tenant, mac, more);
const on = (uid: string) => ({ token: ana.token, params: { uid } });
const get = async (uid: string) => (await app.call("getDevice", on(uid))).body;
const flush = () => app.services.heartbeats.flush();
const info = { id: "arch", pretty_name: "Arch", version: "v1", arch: "arm64", platform: "native" };

describe("an unchanged report", () => {
  test("is written later, with the time of the report", async () => {
    const { uid } = await report();
    const { last_seen: first } = await get(uid);
    app.pass(60);
    await report();
    expect((await get(uid)).last_seen).toBe(first);
    await flush();
    const { last_seen: second } = await get(uid);
    expect(Date.parse(second) - Date.parse(first)).toBeGreaterThanOrEqual(60_000);
  });

  test("returns the response to the first report", async () => {
    expect(await report()).toEqual(await report());
  });

  test("updates many devices, with separate times", async () => {
    app.stopClock();
    const uids: string[] = [];
    for (let n = 10; n < 20; n += 1) uids.push((await report({}, `00:00:00:00:00:${n}`)).uid);
    const times = () => Promise.all(uids.map(async (uid) => Date.parse((await get(uid)).last_seen)));
    const before = await times();
    for (let n = 10; n < 20; n += 1) {
      app.pass(5);
      await report({}, `00:00:00:00:00:${n}`);
    }
    await flush();
    expect(await times()).toEqual(before.map((time, index) => time + (index + 1) * 5000));
  });

  test("does not undo a later offline mark, but the next report does", async () => {
    const { uid } = await report();
    await report();
    await app.services.db.device.update({ where: { uid }, data: { offline: true } });
    await flush();
    expect((await get(uid)).online).toBe(false);
    await report();
    expect((await get(uid)).online).toBe(true);
  });

  test("does not undo a later time of another instance", async () => {
    const { uid } = await report();
    await report();
    const later = new Date(Date.now() + 30_000);
    await app.services.db.device.update({ where: { uid }, data: { lastSeen: later } });
    await flush();
    expect((await get(uid)).last_seen).toBe(later.toISOString());
  });
});

describe("changes are stored before the answer", () => {
  test("information about the device, and its address", async () => {
    const { uid } = await report();
    await report({ info });
    expect((await get(uid)).info).toEqual(info);
  });

  test("a deleted device enrolls again in spite of a delayed report", async () => {
    const { uid } = await report();
    await report();
    expect((await app.call("deleteDevice", on(uid))).status).toBe(200);
    await flush();
    expect((await app.call("getDevice", on(uid))).status).toBe(404);
    expect((await report()).uid).toBe(uid);
    expect((await get(uid)).status).toBe("pending");
  });

  test("a new name is returned immediately, and a deleted namespace is unknown immediately", async () => {
    const { uid } = await report();
    await app.call("renameDevice", { ...on(uid), body: { name: "gate" } });
    await app.services.db.namespace.update({ where: { tenantId: ana.tenant }, data: { name: "labs" } });
    expect(await report()).toMatchObject({ name: "gate", namespace: "labs" });
    await app.services.db.namespace.delete({ where: { tenantId: ana.tenant } });
    await expect(report()).rejects.toThrow("404");
  });
});

test("returns the same token for the same signing key, and another token for another key", async () => {
  const { token } = await report();
  expect((await report()).token).toBe(token);
  expect((await report({}, "00:00:00:00:00:02")).token).not.toBe(token);
  Object.assign(app.services.keys, generateKeyPairSync("rsa", { modulusLength: 2048 }));
  expect((await report()).token).not.toBe(token);
});

describe("heartbeats", () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  /** A fake database that records the device uids of each write, or rejects the write if `state.fails` is set. */
  function fakeDatabase() {
    const state = { fails: false, written: [] as string[][] };
    const updateMany = async ({ where }: { where: { uid: { in: string[] } } }) => {
      if (state.fails) throw new Error("disk full");
      state.written.push(where.uid.in);
    };
    return { state, db: { device: { updateMany } } as unknown as PrismaClient };
  }

  test("are written within the stated delay, many in one statement", async () => {
    vi.useFakeTimers();
    const { state, db } = fakeDatabase();
    const heartbeats = new Heartbeats(db, () => {});
    const now = new Date();
    heartbeats.beat("b", now);
    await vi.advanceTimersByTimeAsync(HEARTBEAT_DELAY - 1);
    heartbeats.beat("a", now);
    heartbeats.beat("b", now);
    expect(state.written).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(state.written).toEqual([["a", "b"]]);
    await vi.advanceTimersByTimeAsync(10 * HEARTBEAT_DELAY);
    expect(state.written).toHaveLength(1);
  });

  test("are written later after a failure, which is reported", async () => {
    vi.useFakeTimers();
    const { state, db } = fakeDatabase();
    const errors: unknown[] = [];
    const heartbeats = new Heartbeats(db, (error) => errors.push(error));
    state.fails = true;
    heartbeats.beat("a", new Date());
    await vi.advanceTimersByTimeAsync(HEARTBEAT_DELAY);
    expect(errors).toEqual([new Error("disk full")]);
    await expect(heartbeats.flush()).rejects.toThrow("disk full");
    state.fails = false;
    heartbeats.beat("b", new Date());
    await heartbeats.flush();
    expect(state.written.flat().sort()).toEqual(["a", "b"]);
  });
});
