import { afterAll, beforeAll, expect, test } from "vitest";
import { type Database, type DatabaseLocation, openDatabase } from "../../../server/db/openDatabase.ts";
import { SILENCE_TIMEOUT } from "../../../server/db/openPostgresql.ts";
import { outageOf } from "../../../server/db/outage.ts";
import { inTransaction } from "../../../server/features/transaction.ts";
import { type StallingProxy, startStallingProxy } from "../../support/proxy.ts";
import { startApp, type TestApp, type TestUser } from "../http/testApp.ts";

/** Instead of the ten seconds of a real service; a living database must be able to answer in half of it. */
const SILENCE = 4_000;

let proxy: StallingProxy;
let app: TestApp;
let ana: TestUser;
beforeAll(async () => {
  const open = async (location: DatabaseLocation): Promise<Database> => {
    if (!("url" in location)) throw new Error("this is a test of PostgreSQL");
    const url = new URL(location.url);
    proxy = await startStallingProxy(Number(url.port));
    url.port = String(proxy.port);
    // Fewer than the requests that wait.
    return openDatabase({ ...location, url: url.toString(), connections: 4, silence: SILENCE });
  };
  app = await startApp({}, open);
  ana = await app.user("ana", "lab");
});
afterAll(async () => {
  proxy.recover();
  await app.stop();
  await proxy.stop();
});

const read = () => app.call("getDevices", { token: ana.token });
const makeKey = (name: string) =>
  app.call("createApiKey", { token: ana.token, body: { name, expires_at: 30 } });
const login = () => app.call("login", { body: { username: "ana", password: "wrong" } });

test("while the database hangs, reads and writes fail after the same silence; then all goes on", async () => {
  // On connections that are there, and then on new ones.
  for (const round of ["open", "new"]) {
    if (round === "open") await Promise.all([read(), read(), read(), read()]);
    proxy.stall();
    // None of them ends but by the bound: the database hangs until all have.
    const answers = await Promise.all([read(), makeKey("lost"), login(), read(), makeKey("lost"), read()]);
    for (const { status, headers, body } of answers) {
      expect([status, headers.get("retry-after")]).toEqual([503, "5"]);
      expect(body).toEqual({ message: "the database cannot be reached now, try again later" });
    }
  }
  proxy.recover();
  await expect.poll(async () => (await read()).status).toBe(200);
  expect((await makeKey("kept")).status).toBe(200);
});

test("a transaction that has begun fails as well, before its own bound", async () => {
  const work = inTransaction(app.services, async (tx) => {
    await tx.namespace.findFirst();
    proxy.stall();
    await tx.namespace.updateMany({ data: { maxDevices: 7 } });
  });
  const error = await work.catch((reason: unknown) => reason);
  expect(outageOf(error)).toBe("unreachable");
  proxy.recover();
  await expect.poll(async () => (await read()).status).toBe(200);
  expect(await app.services.db.namespace.count({ where: { maxDevices: 7 } })).toBe(0);
});

test("a statement of a database that lives may take longer, in a transaction and outside of one", async () => {
  const seconds = (SILENCE / 1000) * 1.6;
  const { db } = app.services;
  await Promise.all([
    db.$executeRaw`SELECT pg_sleep(${seconds})`,
    inTransaction(app.services, (tx) => tx.$executeRaw`SELECT pg_sleep(${seconds})`),
  ]);
});

test("the service's own bound is ten seconds", () => {
  expect(SILENCE_TIMEOUT).toBe(10_000);
});
