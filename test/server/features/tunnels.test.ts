import { afterEach, beforeEach, expect, test } from "vitest";
import { removeExpiredTunnels } from "../../../server/features/tunnels/tunnels.ts";
import { enroll, startApp, type TestApp, type TestUser, valuesOf } from "../http/testApp.ts";

let app: TestApp;
let ana: TestUser;
let uid: string;

async function start(...settings: Parameters<typeof startApp>): Promise<void> {
  app = await startApp(...settings);
  app.stopClock();
  ana = await app.user("ana", "lab");
  ({ uid } = await enroll(app, ana.tenant, "00:00:00:00:00:01"));
}
beforeEach(() => start());
afterEach(() => app.stop());

const FORWARD = { host: "127.0.0.1", port: 8080, ttl: 3600 };
const create = (more: object = {}, device = uid) =>
  ana.call("createTunnel", { params: { uid: device }, body: { ...FORWARD, ...more } });
const list = async (device = uid) => (await ana.call("listTunnels", { params: { uid: device } })).body;
const remove = async (address: string, device = uid) =>
  (await ana.call("deleteTunnel", { params: { uid: device, address } })).status;

test("creates a tunnel with a random address in the service's domain, and an end", async () => {
  const { status, body, headers } = await create();
  expect(status).toBe(200);
  expect(body).toEqual({
    address: expect.stringMatching(/^[0-9a-f]{32}$/),
    full_address: `${body.address}.127.0.0.1`,
    namespace: ana.tenant,
    device: uid,
    ...FORWARD,
    expires_in: new Date(app.services.now().getTime() + 3_600_000).toISOString(),
    created_at: app.services.now().toISOString(),
    revision: expect.stringMatching(/^[\w-]{22}$/),
  });
  expect(headers.get("etag")).toBe(`"${body.revision}"`);
  expect(await list()).toEqual([body]);
  expect((await create()).body.address).not.toBe(body.address);
});

test("uses the configured domain", async () => {
  await app.stop();
  await start({ tunnelsDomain: "tunnels.example.org" });
  const { body } = await create();
  expect(body.full_address).toBe(`${body.address}.tunnels.example.org`);
});

test("keeps a tunnel of -1 until it is deleted, and allows at most 292 years", async () => {
  const { body } = await create({ ttl: -1 });
  expect([body.ttl, body.expires_in]).toEqual([-1, "0001-01-01T00:00:00Z"]);
  const long = await create({ ttl: 9_223_372_036 });
  expect(long.body.ttl).toBe(9_223_372_036);
  expect(long.body.expires_in).toBe(new Date(app.services.now().getTime() + 9_223_372_036_000).toISOString());
  app.pass(48 * 3600);
  ana = { ...ana, token: await app.tokenOf(ana) };
  expect(await list()).toHaveLength(2);
  expect(await remove(body.address)).toBe(200);
  expect(await remove(body.address)).toBe(404);
  expect(await list()).toEqual([long.body]);
});

test("hides an ended tunnel from lists and deletions, and deletes it at the next upkeep", async () => {
  const { body } = await create({ ttl: 10 });
  const lasting = await create({ ttl: 20 });
  app.pass(9);
  await removeExpiredTunnels(app.services);
  expect(await list()).toHaveLength(2);
  app.pass(1);
  expect(await list()).toEqual([lasting.body]);
  expect(await remove(body.address)).toBe(404);
  expect(await app.services.db.tunnel.count()).toBe(2);
  await removeExpiredTunnels(app.services);
  expect(await app.services.db.tunnel.count()).toBe(1);
});

test("frees the Idempotency-Key of a creation when the tunnel has ended", async () => {
  const headers = { "idempotency-key": "one" };
  const createWithKey = () =>
    ana.call("createTunnel", { params: { uid }, body: { ...FORWARD, ttl: 10 }, headers });
  const first = await createWithKey();
  expect((await createWithKey()).body).toEqual(first.body);
  app.pass(10);
  const second = await createWithKey();
  expect(second.status).toBe(200);
  expect(second.body.address).not.toBe(first.body.address);
});

test("the limit of tunnels is separate for each device, and ignores ended tunnels", async () => {
  await app.stop();
  await start({ maximumTunnels: 1 });
  expect((await create({ ttl: 10 })).status).toBe(200);
  expect((await create()).status).toBe(403);
  const other = await enroll(app, ana.tenant, "00:00:00:00:00:02");
  expect((await create({}, other.uid)).status).toBe(200);
  app.pass(10);
  expect((await create()).status).toBe(200);
});

test("rejects wrong fields by name", async () => {
  for (const [more, expected] of [
    [{ host: "::1" }, 200],
    [{ host: "fe80::1" }, 200],
    [{ host: "localhost" }, 400],
    [{ host: "127.1" }, 400],
    [{ host: "0x7f000001" }, 400],
    [{ host: "127.0.0.1:80" }, 400],
    [{ host: "fe80::1%eth0" }, 400],
    [{ host: "" }, 400],
    [{ host: undefined }, 400],
    [{ port: 0 }, 400],
    [{ port: 65_536 }, 400],
    [{ port: 65_535 }, 200],
    [{ port: "80" }, 422],
    [{ port: 1.5 }, 422],
    [{ ttl: 0 }, 400],
    [{ ttl: -2 }, 400],
    [{ ttl: 9_223_372_037 }, 400],
    [{ ttl: 1.5 }, 400],
    [{ ttl: undefined }, 400],
  ] as const) {
    const { status, body } = await create(more);
    expect(status, JSON.stringify(more)).toBe(expected);
    if (status !== 200) expect(body.message).toContain(Object.keys(more)[0]);
  }
});

test("finds a tunnel only at its own device", async () => {
  const other = await enroll(app, ana.tenant, "00:00:00:00:00:02");
  const { body } = await create();
  expect(await list(other.uid)).toEqual([]);
  expect(await remove(body.address, other.uid)).toBe(404);
  expect(await list()).toEqual([body]);
});

test("lists the latest first, in pages", async () => {
  for (const port of [1, 2, 3]) {
    await create({ port });
    app.pass(1);
  }
  const query = { page: 2, per_page: 2 };
  const { body, headers } = await ana.call("listTunnels", { params: { uid }, query });
  expect(valuesOf(body, "port")).toEqual([1]);
  expect(headers.get("x-total-count")).toBe("3");
});

test("records creation and deletion in the audit trail", async () => {
  const { body } = await create();
  await remove(body.address);
  const { body: trail } = await ana.call("getAuditTrail", { query: { kind: "tunnel" } });
  const declared = { device: uid, ...FORWARD };
  expect(trail).toMatchObject([
    {
      operation: "deleteTunnel",
      object: { kind: "tunnel", id: body.address },
      before: declared,
      after: null,
    },
    {
      operation: "createTunnel",
      object: { kind: "tunnel", id: body.address },
      before: null,
      after: declared,
    },
  ]);
});

test.each(["enterprise", "cloud"] as const)("deletes tunnels with their device on %s", async (edition) => {
  await app.stop();
  await start({ edition });
  await ana.call("acceptDevice", { params: { uid } });
  await create();
  expect((await ana.call("deleteDevice", { params: { uid } })).status).toBe(200);
  expect(await app.services.db.tunnel.count()).toBe(0);
  expect((await create()).status).toBe(404);
});
