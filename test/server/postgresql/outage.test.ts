import { afterAll, beforeAll, expect, test } from "vitest";
import { call } from "../../support/call.ts";
import { testFolder } from "../../support/folder.ts";
import { type Instances, startInstances } from "../../support/instances.ts";
import { type PostgresqlServer, startPostgresql } from "../../support/postgresql/server.ts";
import { callServerCommand } from "../../support/serverCommand.ts";
import type { TestService } from "../../support/service.ts";
import { valuesOf } from "../http/testApp.ts";
import { expectFailure } from "../process/failure.ts";
import { query } from "./clients.ts";

let postgresql: PostgresqlServer;
let instances: Instances;
let service: TestService;
let user: object;
beforeAll(async () => {
  postgresql = await startPostgresql();
  instances = await startInstances(postgresql.url, 1);
  [service] = instances.services as [TestService];
  user = await service.setup();
});
afterAll(async () => {
  // After a failed test, the PostgreSQL server may still be stopped. It must run again, so that the test's database can
  // be removed.
  await postgresql.resume();
  await instances.stop();
  await postgresql.stop();
});

/** Time limit for the database to stop and to recover. */
const patiently = { timeout: 60_000 };

const ready = async () => (await call(service, "GET /readyz")).status;
/** The errors of the service's log lines with a message, as JSON. */
const causes = (message: string) =>
  JSON.stringify(service.logs().flatMap(({ msg, err }) => (msg === message ? [err] : [])));
const makeKey = (token: string, name: string) =>
  call(service, "POST /api/namespaces/api-key", { token, body: { name, expires_at: 30 } });

test("an outage of the database causes no crash and no wrong response, and the service recovers", {
  timeout: 180_000,
}, async () => {
  const { body: session } = await call(service, "POST /api/login", { body: user });
  const { token, tenant } = session;
  expect((await makeKey(token, "before")).status).toBe(200);

  for (const round of ["first", "second"]) {
    await postgresql.halt();
    await expect.poll(ready, patiently).toBe(503);
    expect((await call(service, "GET /healthz")).status).toBe(200);
    const refused = await Promise.all([
      call(service, "GET /api/devices", { token }),
      call(service, `GET /api/namespaces/${tenant}`, { token }),
      makeKey(token, `${round}-lost`),
      call(service, "POST /api/login", { body: user }),
    ]);
    for (const { status, headers, body } of refused) {
      expect([status, headers.get("retry-after")]).toEqual([503, "5"]);
      // The response contains neither an address nor a statement nor other internal details.
      expect(JSON.stringify(body)).not.toMatch(/127\.0\.0\.1|postgres|ECONN|SELECT|Prisma/i);
    }

    await postgresql.resume();
    await expect.poll(ready, patiently).toBe(200);
    const list = async () => (await call(service, "GET /api/devices", { token })).status;
    await expect.poll(list, patiently).toBe(200);
    expect((await makeKey(token, `${round}-after`)).status).toBe(200);
    expect((await call(service, "POST /api/login", { body: user })).status).toBe(200);
  }
  const { body: keys } = await call(service, "GET /api/namespaces/api-key", { token });
  expect(valuesOf(keys, "name").sort()).toEqual(["before", "first-after", "second-after"]);
  // The operator sees why the database does not respond: no server listens, or the server ends its connections.
  expect(causes("the database does not respond")).toMatch(
    /"kind":"(DatabaseNotReachable|ConnectionClosed)"|"(code|originalCode)":"(ECONNREFUSED|57P0[123])"/,
  );
  // A new connection of a request is refused by the system.
  expect(causes("database unavailable")).toContain('"code":"ECONNREFUSED"');
});

// This test takes long, because the readiness check fails for fifteen seconds after a failed write. For SQLite,
// sqlite/fullDisk.test.ts tests this with a simulated clock.
test("readiness fails while the database rejects writes, and recovers without a restart", {
  timeout: 180_000,
  tags: ["long"],
}, async () => {
  const become = async (readOnly: "on" | "off") => {
    const name = new URL(instances.databaseUrl).pathname.slice(1);
    await query(postgresql.url, `ALTER DATABASE ${name} SET default_transaction_read_only = ${readOnly}`);
    const terminate = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1";
    await query(postgresql.url, terminate, [name]);
  };
  const { body } = await call(service, "POST /api/login", { body: user });
  await become("on");
  await expect.poll(ready, patiently).toBe(503);
  const list = async () => (await call(service, "GET /api/devices", { token: body.token })).status;
  await expect.poll(list, patiently).toBe(200);
  const refused = await makeKey(body.token, "refused");
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "5"]);
  expect(refused.body).toEqual({ message: "the service cannot write to the database now; try again later" });
  await become("off");
  await expect.poll(ready, patiently).toBe(200);
  expect((await makeKey(body.token, "taken")).status).toBe(200);
  // The SQLSTATE of a write in a read-only transaction.
  expect(causes("the database cannot be written")).toContain('"originalCode":"25006"');
});

test("a service does not start without its database, and reports the reason without the password", async () => {
  const url = new URL(instances.databaseUrl);
  url.password = "pa55word";
  await postgresql.halt();
  const env = { GATEHOUSE_DATABASE_URL: url.toString() };
  const refused = await callServerCommand(["serve", "--data-dir", testFolder(), "--port", "0"], { env });
  await postgresql.resume();
  expectFailure(
    refused,
    /^gatehouse-server: Cannot use the database postgresql:\/\/gatehouse@127[^\n]*ECONNREFUSED[^\n]*\n$/,
  );
  expect(refused.stderr).not.toContain("pa55word");
});
