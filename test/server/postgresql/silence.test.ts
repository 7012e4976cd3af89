import { describe, expect, type TestContext, test } from "vitest";
import type { Database, DatabaseLocation } from "../../../server/db/Database.ts";
import { openDatabase } from "../../../server/db/openDatabase.ts";
import { outageOf } from "../../../server/db/outage.ts";
import { SILENCE_TIMEOUT } from "../../../server/db/postgresql/openDatabase.ts";
import { inTransaction } from "../../../server/db/sql/transaction.ts";
import { startStallingProxy } from "../../support/proxy.ts";
import { startApp } from "../http/testApp.ts";

/**
 * Time, in milliseconds, after which a silent database counts as unreachable. The service's default is ten seconds. A
 * working database must be able to respond in half of this time.
 */
const SILENCE = 4_000;

/**
 * Starts a service whose database the test can make unresponsive, and creates a user. The service stops when the test
 * ends.
 */
async function start({ onTestFinished }: TestContext) {
  const direct = Promise.withResolvers<URL>();
  const through = Promise.withResolvers<string>();
  const starting = startApp({}, async (location: DatabaseLocation): Promise<Database> => {
    if (!("url" in location)) throw new Error("this test needs PostgreSQL");
    direct.resolve(new URL(location.url));
    // The service has fewer database connections than waiting requests.
    return openDatabase({ ...location, url: await through.promise, connections: 4, silence: SILENCE });
  });
  const url = await direct.promise;
  const proxy = await startStallingProxy(Number(url.port));
  url.port = String(proxy.port);
  through.resolve(url.toString());
  const app = await starting;
  onTestFinished(async () => {
    proxy.recover();
    await app.stop();
    await proxy.stop();
  });
  const user = await app.user("ana", "lab");
  return {
    app,
    proxy,
    read: () => user.call("getDevices"),
    makeKey: (name: string) => user.call("createApiKey", { body: { name, expires_at: 30 } }),
    login: () => app.call("login", { body: { username: "ana", password: "wrong" } }),
  };
}

// The tests run concurrently, because they wait for timeouts most of the time.
describe.concurrent("a silent database", { tags: ["long"] }, () => {
  test("fails reads and writes after the same silence, and works again afterwards", {
    tags: ["long"],
  }, async (context) => {
    const { proxy, read, makeKey, login } = await start(context);
    // The first round uses open connections, the second one new connections.
    for (const round of ["open", "new"]) {
      if (round === "open") await Promise.all([read(), read(), read(), read()]);
      proxy.stall();
      // The database responds only after all requests have ended, so only the timeout can end the requests.
      const answers = await Promise.all([read(), makeKey("lost"), login(), read(), makeKey("lost"), read()]);
      for (const { status, headers, body } of answers) {
        expect([status, headers.get("retry-after")]).toEqual([503, "5"]);
        expect(body).toEqual({ message: "the service cannot connect to the database now; try again later" });
      }
    }
    proxy.recover();
    await context.expect.poll(async () => (await read()).status).toBe(200);
    expect((await makeKey("kept")).status).toBe(200);
  });

  test("fails a transaction that has begun too, before the transaction's own timeout", {
    tags: ["long"],
  }, async (context) => {
    const { app, proxy, read } = await start(context);
    const work = inTransaction(app.services, async (tx) => {
      await tx.namespace.findFirst();
      proxy.stall();
      await tx.namespace.updateMany({ data: { maxDevices: 7 } });
    });
    const error = await work.catch((reason: unknown) => reason);
    expect(outageOf(error)).toBe("unreachable");
    proxy.recover();
    await context.expect.poll(async () => (await read()).status).toBe(200);
    expect(await app.services.db.namespace.count({ where: { maxDevices: 7 } })).toBe(0);
  });

  test("differs from a database with slow statements, in a transaction and outside", {
    tags: ["long"],
  }, async (context) => {
    const seconds = (SILENCE / 1000) * 1.6;
    const { app } = await start(context);
    const { db } = app.services;
    await Promise.all([
      db.$executeRaw`SELECT pg_sleep(${seconds})`,
      inTransaction(app.services, (tx) => tx.$executeRaw`SELECT pg_sleep(${seconds})`),
    ]);
  });
});

test("the service's own limit is ten seconds", () => {
  expect(SILENCE_TIMEOUT).toBe(10_000);
});
