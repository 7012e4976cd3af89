import { randomBytes } from "node:crypto";
import { beforeEach, describe, expect, test } from "vitest";
import { testApp, withAppAndUser, withInternalApp } from "../http/appOfTest.ts";
import { startInternalApp } from "../http/internalTestApp.ts";
import { enroll, enrollProven, valuesOf } from "../http/testApp.ts";

let device: string;
let deviceToken: string;

const { app, ana } = withAppAndUser();
const internal = withInternalApp(app);
beforeEach(async () => {
  ({ uid: device, token: deviceToken } = await acceptedDevice("web-1", "00:00:00:00:00:01"));
});

async function acceptedDevice(hostname: string, mac: string, more: object = {}) {
  const enrolled = await enrollProven(app, ana.tenant, mac, { hostname, ...more });
  const { status } = await ana.call("acceptDevice", { params: { uid: enrolled.uid } });
  expect(status).toBe(200);
  return enrolled as { uid: string; token: string };
}

const deviceRow = () => app.services.db.device.findUniqueOrThrow({ where: { uid: device } });

const newUid = () => randomBytes(32).toString("hex");
const login = (more: object = {}) => ({
  uid: newUid(),
  device_uid: device,
  username: "root",
  ip_address: "198.51.100.4",
  type: "web",
  ...more,
});

/** Begins a session as an SSH entry does. Returns the uid of the session. */
async function begin(more: object = {}): Promise<string> {
  const { status, body, text } = await internal.call("createSession", { body: login(more) });
  expect(status, text).toBe(200);
  return body.uid;
}

const read = (uid: string) => ana.call("getSession", { params: { uid } });
const isActive = async (uid: string): Promise<boolean> => (await read(uid)).body.active;
const authenticate = (uid: string) =>
  internal.call("updateSession", { params: { uid }, body: { authenticated: true } });
const keepAlive = (uid: string) => internal.call("keepSessionAlive", { params: { uid } });
const close = (uid: string, of = device) =>
  ana.call("closeSession", { params: { uid }, body: { device: of } });

async function listed(): Promise<string[]> {
  const { status, body } = await ana.call("getSessions", { query: { per_page: 100 } });
  expect(status).toBe(200);
  return valuesOf(body, "uid");
}

describe("a session", () => {
  test("starts with a login to an accepted device, and contains it", async () => {
    const { body: shown } = await ana.call("getDevice", { params: { uid: device } });
    const body = login({ term: "xterm" });
    const created = await internal.call("createSession", { body });
    const answer = await read(body.uid);
    expect(answer.body).toEqual(created.body);
    expect(answer.body).toMatchObject({
      ...body,
      device: shown,
      tenant_id: ana.tenant,
      active: false,
      authenticated: false,
      recorded: false,
      position: { latitude: 0, longitude: 0 },
      events: { types: [], seats: [], items: [] },
    });
    expect((await internal.call("createSession", { body })).status).toBe(409);
  });

  test("has type and terminal `none` by default", async () => {
    const uid = await begin({ type: undefined });
    expect((await read(uid)).body).toMatchObject({ type: "none", term: "none" });
    await internal.call("updateSession", { params: { uid }, body: { type: "term" } });
    expect((await read(uid)).body).toMatchObject({ type: "term", authenticated: false });
  });

  test("is refused for a device that is unknown or not accepted", async () => {
    const { uid: waiting } = await enroll(app, ana.tenant, "00:00:00:00:00:02");
    for (const device_uid of [waiting, newUid()]) {
      expect((await internal.call("createSession", { body: login({ device_uid }) })).status).toBe(404);
    }
    expect((await internal.call("createSession", { body: login({ ip_address: "here" }) })).body.message).toBe(
      "ip_address must be an IPv4 or IPv6 address",
    );
    expect(await listed()).toEqual([]);
  });

  test("is active from its authentication until 90 seconds after the last keep-alive", async () => {
    app.stopClock();
    const uid = await begin();
    expect(await isActive(uid)).toBe(false);
    // A session becomes active when it is authenticated, even if this happens a long time after its start.
    app.pass(200);
    expect((await authenticate(uid)).status).toBe(200);
    expect(await isActive(uid)).toBe(true);
    app.pass(89);
    expect(await isActive(uid)).toBe(true);
    expect((await keepAlive(uid)).status).toBe(200);
    app.pass(89);
    expect(await isActive(uid)).toBe(true);
    app.pass(1);
    expect(await isActive(uid)).toBe(false);
    await keepAlive(uid);
    expect((await read(uid)).body).toMatchObject({
      active: true,
      last_seen: app.services.now().toISOString(),
    });
  });

  test("ends when it is finished: keep-alives are refused, and it cannot become active again", async () => {
    const uid = await begin();
    await authenticate(uid);
    expect((await internal.call("finishSession", { params: { uid } })).status).toBe(200);
    expect((await internal.call("finishSession", { params: { uid } })).status).toBe(200);
    expect(await isActive(uid)).toBe(false);
    expect((await keepAlive(uid)).status).toBe(404);
    const { last_seen } = (await read(uid)).body;
    app.pass(10);
    await authenticate(uid);
    expect((await read(uid)).body).toMatchObject({ active: false, authenticated: true, last_seen });
  });

  test("answers 404 to the SSH entry for an unknown session", async () => {
    const params = { uid: newUid() };
    for (const id of ["updateSession", "keepSessionAlive", "finishSession"] as const) {
      expect((await internal.call(id, { params, body: {} })).status, id).toBe(404);
    }
  });
});

describe("closeSession", () => {
  test("ends the session, and records it once in the audit trail", async () => {
    const uid = await begin();
    await authenticate(uid);
    expect((await close(uid)).status).toBe(200);
    expect((await close(uid)).status).toBe(200);
    expect(await isActive(uid)).toBe(false);
    expect((await keepAlive(uid)).status).toBe(404);
    const { body } = await ana.call("getAuditTrail", { query: { kind: "session" } });
    expect(body).toMatchObject([
      { operation: "closeSession", object: { kind: "session", id: uid }, actor: { name: "ana" } },
    ]);
  });

  test("requires the session's own device", async () => {
    const uid = await begin();
    await authenticate(uid);
    const { uid: other } = await acceptedDevice("web-2", "00:00:00:00:00:02");
    expect((await close(uid, other)).status).toBe(404);
    expect((await close(uid, "web-1")).status).toBe(400);
    const params = { uid };
    expect((await ana.call("closeSession", { params, body: {} })).body.message).toMatch(
      /^device is required/,
    );
    expect(await isActive(uid)).toBe(true);
  });
});

describe("setSessionAuthenticated", () => {
  const set = (uid: string, token: string, authenticated: unknown = true) =>
    app.call("setSessionAuthenticated", { token, params: { uid }, body: { authenticated } });

  test("accepts administrators, and the session's own device only", async () => {
    const uid = await begin();
    const { token: neighbor } = await acceptedDevice("web-2", "00:00:00:00:00:02");
    expect((await set(uid, neighbor)).status).toBe(404);
    expect((await read(uid)).body.authenticated).toBe(false);
    expect((await set(uid, deviceToken)).status).toBe(200);
    expect((await read(uid)).body).toMatchObject({ authenticated: true, active: true });
    expect((await set(uid, ana.token, false)).status).toBe(200);
    expect((await read(uid)).body).toMatchObject({ authenticated: false, active: false });
    expect((await set(uid, ana.token, "yes")).status).toBe(422);
  });

  test("rejects a device that has not proven its key, and rejects every device for a session through the gateway", async () => {
    const uid = await begin();
    const { token } = await enroll(app, ana.tenant, "00:00:00:00:00:01", {
      hostname: "web-1",
      public_key: (await deviceRow()).publicKey,
    });
    expect((await set(uid, token)).status).toBe(403);
    await app.services.db.session.update({ where: { uid }, data: { viaGateway: true } });
    expect((await set(uid, deviceToken)).body.message).toContain("runs through the gateway");
    expect((await set(uid, ana.token)).status).toBe(200);
  });

  test("lets no device read sessions", async () => {
    const uid = await begin();
    expect((await app.call("getSessions", { token: deviceToken })).status).toBe(403);
    expect((await app.call("getSession", { token: deviceToken, params: { uid } })).status).toBe(403);
  });
});

describe("getSessions", () => {
  test("lists the latest first, in pages, with the exact total", async () => {
    app.stopClock();
    const uids: string[] = [];
    for (let n = 0; n < 5; n += 1) {
      uids.unshift(await begin());
      app.pass(1);
    }
    const page = async (number: number) => {
      const { body, headers } = await ana.call("getSessions", { query: { page: number, per_page: 2 } });
      expect(headers.get("x-total-count")).toBe("5");
      return valuesOf(body, "uid");
    };
    expect([await page(1), await page(2), await page(3), await page(4)]).toEqual([
      uids.slice(0, 2),
      uids.slice(2, 4),
      uids.slice(4),
      [],
    ]);
  });

  test("returns the types of events in lists, and the events in getSession", async () => {
    const uid = await begin();
    const timestamp = "2026-01-02T03:04:05.678Z";
    const event = (type: string, seat: number, data: object = {}) =>
      internal.call("addSessionEvent", { params: { uid }, body: { type, seat, timestamp, data } });
    const pty = { term: "xterm", columns: 80, rows: 24, modelist: "AAA=" };
    expect((await event("shell", 1, { command: "\u0000" })).status).toBe(200);
    await event("pty-req", 0, pty);
    await event("window-change", 0, { columns: 90 });
    await event("window-change", 0, { columns: 100 });
    const kinds = { seats: [0, 1], types: [["pty-req", "window-change"], ["shell"]] };
    const [inList] = (await ana.call("getSessions")).body;
    expect(inList.events).toEqual({ ...kinds, items: [] });
    const { events } = (await read(uid)).body;
    expect(events).toMatchObject(kinds);
    expect(valuesOf(events.items, "type")).toEqual(["shell", "pty-req", "window-change", "window-change"]);
    expect(events.items[0]).toEqual({ type: "shell", seat: 1, timestamp, data: { command: "\u0000" } });
    expect(events.items[1].data).toEqual(pty);
    await app.services.db.session.update({ where: { uid }, data: { boundedEvents: 1000 } });
    expect((await event("signal", 0)).body.message).toContain("a session can store at most 1000 events");
    expect((await event("exec", 0)).status).toBe(200);
  });

  test("keeps all concurrent events", async () => {
    const uid = await begin();
    const event = { seat: 0, timestamp: new Date().toISOString(), data: {} };
    const bodies = Array.from({ length: 8 }, (_, index) => ({ ...event, type: `event-${index}` }));
    const answers = await Promise.all(
      bodies.map((body) => internal.call("addSessionEvent", { params: { uid }, body })),
    );
    expect(answers.map(({ status }) => status)).toEqual(bodies.map(() => 200));
    const { items } = (await read(uid)).body.events;
    expect(valuesOf(items, "type").sort()).toEqual(bodies.map(({ type }) => type));
  });
});

describe("a device's report", () => {
  const report = (sessions: string[]) =>
    enrollProven(app, ana.tenant, "00:00:00:00:00:01", { hostname: "web-1", sessions });

  test("keeps the reported sessions alive if they are open and its own", async () => {
    app.stopClock();
    const { uid: other } = await acceptedDevice("web-2", "00:00:00:00:00:02");
    const [mine, closed, theirs, unnamed] = [
      await begin(),
      await begin(),
      await begin({ device_uid: other }),
      await begin(),
    ];
    await close(closed);
    const began = app.services.now().toISOString();
    app.pass(60);
    await report([mine, closed, theirs, "no session"]);
    const seen = async (uid: string) => (await read(uid)).body.last_seen;
    expect(await seen(mine)).toBe(app.services.now().toISOString());
    for (const uid of [closed, theirs, unnamed]) expect(await seen(uid)).toBe(began);
  });
});

describe("the sessions of a device", () => {
  test("are deleted with the device", async () => {
    await begin();
    expect((await ana.call("deleteDevice", { params: { uid: device } })).status).toBe(200);
    expect(await listed()).toEqual([]);
    expect(await app.services.db.session.count()).toBe(0);
  });

  test("are deleted with its namespace", async () => {
    await begin();
    const { status } = await ana.call("deleteNamespace");
    expect(status).toBe(200);
    expect(await app.services.db.session.count()).toBe(0);
  });

  test("move to the same machine with a new key when it is accepted", async () => {
    const uid = await begin();
    const { uid: successor } = await acceptedDevice("web-1", "00:00:00:00:00:01", {
      public_key: "another",
      proof: undefined,
    });
    expect(successor).not.toBe(device);
    expect((await read(uid)).body).toMatchObject({ device_uid: successor, device: { name: "web-1" } });
  });
});

test("deletes sessions with an accepted device on a cloud instance too", { tags: ["long"] }, async () => {
  const cloud = await testApp({ edition: "cloud" });
  const bob = await cloud.user("bob", "clouds");
  const { uid } = await enroll(cloud, bob.tenant, "00:00:00:00:00:09");
  await bob.call("acceptDevice", { params: { uid } });
  const listener = await startInternalApp(cloud);
  await listener.call("createSession", { body: login({ device_uid: uid }) });
  const sessions = async () => (await bob.call("getSessions")).body.length;
  expect(await sessions()).toBe(1);
  await bob.call("deleteDevice", { params: { uid } });
  expect(await sessions()).toBe(0);
  await listener.stop();
});
