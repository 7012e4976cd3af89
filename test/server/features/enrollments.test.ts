import { afterEach, expect, test } from "vitest";
import type { DatabaseLocation } from "../../../server/db/Database.ts";
import { openDatabase } from "../../../server/db/openDatabase.ts";
import type { ServiceSettings } from "../../../server/settings/readConfig.ts";
import { expectError } from "../http/answers.ts";
import { replacing } from "../http/fixtures.ts";
import { reportOf, startApp, type TestApp, type TestUser } from "../http/testApp.ts";

let app: TestApp;
let eve: TestUser;
let transactions = 0;
afterEach(() => app.stop());

async function openCounting(location: DatabaseLocation) {
  const { client, close } = await openDatabase(location);
  const counted = (...given: unknown[]) => {
    transactions += 1;
    return Reflect.apply(client.$transaction, client, given);
  };
  return { client: replacing(client, { $transaction: counted }), close };
}

async function start(settings: Partial<ServiceSettings>) {
  app = await startApp({ trustedProxies: ["127.0.0.1"], ...settings }, openCounting);
  app.stopClock();
  eve = await app.user("eve", "lab");
}

const report = (hostname: string, { tenant = eve.tenant, version = "", ip = "203.0.113.1" } = {}) =>
  app.call("authDevice", {
    body: reportOf(tenant, hostname, { info: { ...reportOf("", "").info, version } }),
    headers: { "x-real-ip": ip },
  });

/** Returns the number of transactions that begin during the given work. */
async function transactionsOf(work: () => Promise<unknown>): Promise<number> {
  const before = transactions;
  await work();
  return transactions - before;
}

test("limits pending devices, also of concurrent reports, for some seconds without a transaction", async () => {
  await start({ maximumPendingDevices: 3 });
  const answers = await Promise.all(Array.from({ length: 8 }, (_, n) => report(`host-${n}`)));
  const pending = answers.filter(({ status }) => status === 200).map(({ body }) => body);
  expect(pending).toHaveLength(3);
  const refuse = async (name: string) => {
    expectError(await report(name), 403, /^the namespace has the maximum of 3 pending devices/);
  };
  const flood = () => Promise.all(Array.from({ length: 30 }, (_, n) => refuse(`new-${n}`)));
  expect(await transactionsOf(flood)).toBe(0);
  // The full namespace still accepts reports from known devices. Other namespaces still accept new devices.
  const [one, two, three] = pending;
  expect((await report(one.name, { version: "v2" })).status).toBe(200);
  const bob = await app.user("bob", "home");
  expect((await report("one", { tenant: bob.tenant })).status).toBe(200);
  // The service remembers for a few seconds that the namespace is full. After this time, it checks the database again,
  // in a transaction.
  app.pass(6);
  expect(await transactionsOf(() => refuse("new-0"))).toBe(1);
  const decisions = [
    () => eve.call("acceptDevice", { params: { uid: one.uid } }),
    () => eve.call("updateDeviceStatus", { params: { uid: two.uid, status: "reject" } }),
    () => eve.call("deleteDevice", { params: { uid: three.uid } }),
  ];
  for (const [index, decide] of decisions.entries()) {
    await refuse("new-0");
    expect((await decide()).status).toBe(200);
    expect((await report(`fits-${index}`)).status).toBe(200);
  }
});

test("limits new devices for each address, independently of reports", async () => {
  await start({ enrollmentsPerAddress: 3 });
  for (const name of ["one", "two", "three"]) expect((await report(name)).status).toBe(200);
  const refused = await report("four");
  expect(refused.status).toBe(429);
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  for (const name of ["one", "two", "three"]) {
    expect((await report(name)).status).toBe(200);
    expect((await report(name, { version: "v2" })).status).toBe(200);
  }
  expect((await report("four", { ip: "203.0.113.2" })).status).toBe(200);
  app.pass(60);
  expect((await report("five")).status).toBe(200);
});

test("answers 503 to new devices while too many wait, and answers reports of enrolled devices", async () => {
  await start({});
  expect((await report("known")).status).toBe(200);
  let release = () => {};
  const blocked = new Promise<void>((resolve) => {
    release = resolve;
  });
  // The first enrollment runs, and 500 wait: the maximum for one address.
  const sender = { tenantId: eve.tenant, network: "203.0.113.1", isKnown: false };
  const enqueue = (work: () => Promise<void>) => app.services.enrollments.inTurn(sender, work);
  const queued: Promise<void>[] = [];
  await new Promise<void>((begun) => {
    queued.push(
      enqueue(() => {
        begun();
        return blocked;
      }),
    );
  });
  for (let n = 0; n < 500; n += 1) queued.push(enqueue(() => Promise.resolve()));
  const refused = await report("one");
  expect(refused.status).toBe(503);
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  const changed = report("known", { version: "v2" });
  release();
  await Promise.all(queued);
  expect((await changed).status).toBe(200);
  expect((await report("one")).status).toBe(200);
});

test("enrolls a fleet that starts at the same time, with one audit entry for each device", async () => {
  await start({ maximumPendingDevices: 150 });
  const names = Array.from({ length: 200 }, (_, n) => `node-${n}`);
  const statuses = await Promise.all(names.map(async (name) => (await report(name)).status));
  const enrolled = statuses.filter((status) => status === 200);
  const refused = statuses.filter((status) => status === 403);
  expect([enrolled.length, refused.length]).toEqual([150, 50]);
  const { db } = app.services;
  expect(await db.device.count({ where: { tenantId: eve.tenant } })).toBe(150);
  expect(await db.auditEntry.count({ where: { operation: "authDevice" } })).toBe(150);
});
