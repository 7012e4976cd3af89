import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { buildApp } from "../../../server/app.ts";
import type { Database } from "../../../server/db/Database.ts";
import { openDatabase } from "../../../server/db/openDatabase.ts";
import { healthPlugin } from "../../../server/process/health.ts";
import { call } from "../../support/call.ts";
import { testFolder } from "../../support/folder.ts";
import { startService } from "../../support/service.ts";
import { turnableTime, withSharedApp } from "../http/appOfTest.ts";
import { type TestUser, valuesOf } from "../http/testApp.ts";

const app = withSharedApp({}, async (location) => {
  database = await openDatabase(location);
  return database;
});
let ana: TestUser;
let database: Database;
beforeAll(async () => {
  ana = await app.user("ana", "lab");
});

const pragma = async (text: string) => {
  const [row] = await database.client.$queryRawUnsafe<Record<string, unknown>[]>(`PRAGMA ${text}`);
  return Number(Object.values(row ?? {})[0]);
};

const makeKey = (name: string) => ana.call("createApiKey", { body: { name, expires_at: 30 } });
const keys = async (): Promise<string[]> => {
  const { status, body } = await ana.call("listApiKeys", { query: { per_page: 100 } });
  expect(status).toBe(200);
  return valuesOf(body, "name");
};

test("while the disk is full, writes return 503 and reads succeed; with free space, writes succeed again", async () => {
  const created: string[] = [];
  // SQLite handles this size limit like a full disk (SQLITE_FULL). The limit works on any machine.
  await pragma(`max_page_count = ${await pragma("page_count")}`);
  let refused = await makeKey("key-0");
  for (let n = 1; refused.status === 200; n += 1) {
    created.push(`key-${n - 1}`);
    expect(n).toBeLessThan(100);
    refused = await makeKey(`key-${n}`);
  }
  expect([refused.status, refused.headers.get("retry-after"), refused.body]).toEqual([
    503,
    "5",
    { message: "the service cannot write to the database now; try again later" },
  ]);
  expect((await keys()).sort()).toEqual(created.sort());
  await pragma("max_page_count = 1000000000");
  expect((await makeKey("after")).status).toBe(200);
  expect((await keys()).sort()).toEqual([...created, "after"].sort());
});

test("readiness fails when writes fail, and recovers without other requests", async () => {
  const probed = await buildApp(app.services, app.gateway);
  onTestFinished(() => probed.close());
  await probed.register(healthPlugin, { database });
  const ready = async () => (await probed.inject({ method: "GET", url: "/readyz" })).statusCode;
  const pass = turnableTime();
  expect(await ready()).toBe(200);
  const before = (await database.client.$queryRaw<{ n: bigint }[]>`SELECT total_changes() AS n`)[0]?.n;
  // With this setting, SQLite rejects writes as if the disk had been remounted read-only.
  await pragma("query_only = ON");
  onTestFinished(async () => {
    await pragma("query_only = OFF");
  });
  // After a few seconds, the readiness check tries a write again.
  pass(10_000);
  expect(await ready()).toBe(503);
  expect((await makeKey("refused")).status).toBe(503);
  expect((await probed.inject({ method: "GET", url: "/healthz" })).statusCode).toBe(200);
  expect((await keys()).includes("refused")).toBe(false);
  await pragma("query_only = OFF");
  pass(10_000);
  expect(await ready()).toBe(200);
  // The readiness check writes no row. The command that migrates to PostgreSQL would otherwise report a missing row.
  expect((await database.client.$queryRaw<{ n: bigint }[]>`SELECT total_changes() AS n`)[0]?.n).toBe(before);
});

test("a failed write counts for a while, even if smaller writes succeed", async () => {
  const probed = await buildApp(app.services, app.gateway);
  await probed.register(healthPlugin, { database });
  onTestFinished(() => probed.close());
  const ready = async () => (await probed.inject({ method: "GET", url: "/readyz" })).statusCode;
  const make = async (name: string) => {
    const headers = { authorization: `Bearer ${ana.token}` };
    const payload = { name, expires_at: 30 };
    return (await probed.inject({ method: "POST", url: "/api/namespaces/api-key", headers, payload }))
      .statusCode;
  };
  await pragma(`max_page_count = ${await pragma("page_count")}`);
  onTestFinished(async () => {
    await pragma("max_page_count = 1000000000");
  });
  for (let n = 0, status = 200; status !== 503; n += 1) {
    expect(n).toBeLessThan(100);
    status = await make(`small-${n}`);
  }
  expect(await ready()).toBe(503);
  // Advances the clock by a minute without other requests. The readiness check then tries a write again.
  const pass = turnableTime();
  pass(60_000);
  expect(await ready()).toBe(200);
});

test.skipIf(process.platform === "win32")(
  "readiness fails if a small write succeeds and a larger write fails",
  { tags: ["long"] },
  async () => {
    const dataDir = testFolder();
    await (await openDatabase({ file: join(dataDir, "gatehouse.db") })).close();
    const service = await startService({ dataDir, fileLimit: 200 * 1024 });
    const answer = await fetch(`${service.url}/readyz`);
    expect([answer.status, await answer.json()]).toEqual([
      503,
      { message: "the database cannot be written" },
    ]);
    await service.createUser({ username: "ana", password: "hunter22" });
    await service.stop();
    expect(readdirSync(dataDir).filter((name) => name.endsWith(".room"))).toEqual([]);
  },
);

test.skipIf(process.platform === "win32")(
  "a restart on a full disk serves reads",
  { tags: ["long"] },
  async () => {
    const dataDir = testFolder();
    const before = await startService({ dataDir });
    const user = await before.setup();
    const { body } = await call(before, "POST /api/login", { body: user });
    // The kill leaves the write-ahead log behind. The log is larger than the maximum file size of the next service.
    await before.kill();
    const { size } = statSync(join(dataDir, "gatehouse.db-wal"));
    expect(size).toBeGreaterThan(64 * 1024);
    const service = await startService({ dataDir, fileLimit: 64 * 1024, flags: ["--ssh-port", "0"] });
    onTestFinished(async () => void (await service.kill()));
    const token = body.token as string;
    expect(await call(service, "GET /api/namespaces", { token })).toMatchObject({ status: 200 });
    const key = { name: "refused", expires_at: 30 };
    expect(await call(service, "POST /api/namespaces/api-key", { token, body: key })).toMatchObject({
      status: 503,
      body: { message: "the service cannot write to the database now; try again later" },
    });
    expect(
      service.logs().some(({ msg }) => msg.startsWith("cannot write the heartbeat of this instance")),
    ).toBe(true);
  },
);

test("tries few writes, regardless of the number of probes", async () => {
  let tried = 0;
  const probed = await buildApp(app.services, app.gateway);
  onTestFinished(() => probed.close());
  const { client } = database;
  await probed.register(healthPlugin, {
    database: {
      client,
      tryWrite: async () => {
        tried += 1;
        // Simulates a write that waits in the queue forever. The readiness check must not wait long for it.
        await new Promise(() => {});
      },
    },
  });
  const ready = async () => (await probed.inject({ method: "GET", url: "/readyz" })).statusCode;
  expect(await Promise.all(Array.from({ length: 50 }, ready))).toEqual(Array(50).fill(200));
  expect(tried).toBe(1);
});
