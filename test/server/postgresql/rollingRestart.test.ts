import { expect, onTestFinished, test } from "vitest";
import { Balancer } from "../../support/balancer.ts";
import { call } from "../../support/call.ts";
import { testFolder } from "../../support/folder.ts";
import { INSTANCE_SECRET, startInstances } from "../../support/instances.ts";
import { postgresqlAddress } from "../../support/postgresql/database.ts";
import { startService, type TestService } from "../../support/service.ts";
import { query } from "./clients.ts";

/** Number of clients, each with one request at a time. */
const CLIENTS = 6;
/** Minimum number of requests before, between and after the restarts. */
const REQUESTS = 300;

/** Settings of each instance. The lame-duck time is many times the interval of the balancer's probes. */
const SETTINGS = { GATEHOUSE_SSH_PORT: "0", GATEHOUSE_LAME_DUCK: "8" };

test("a rolling restart of three instances behind a load balancer fails no request, and loses and repeats no write", {
  tags: ["long"],
  timeout: 300_000,
}, async () => {
  const instances = await startInstances(postgresqlAddress() ?? "", 3, SETTINGS);
  onTestFinished(() => instances.stop());
  const balancer = new Balancer();
  onTestFinished(() => balancer.stop());
  const user = await (instances.services[0] as TestService).setup();
  const { body } = await call(instances.services[0] as TestService, "POST /api/login", { body: user });
  for (const { url } of instances.services) balancer.add(url);
  await expect.poll(() => balancer.ready.length).toBe(3);

  const written: string[] = [];
  const failures: string[] = [];
  const found = { reads: 0, writes: 0 };
  let isOver = false;
  const clients = Array.from({ length: CLIENTS }, async (_, client) => {
    for (let count = 0; !isOver; count += 1) {
      const name = `key-${client}-${count}`;
      const isWrite = count % 4 === 0;
      try {
        const { status, body: text } = isWrite
          ? await balancer.send("POST", "/api/namespaces/api-key", body.token, { name, expires_at: 30 })
          : await balancer.send("GET", "/api/devices", body.token);
        if (status !== 200) failures.push(`${isWrite ? "write" : "read"}: ${status} ${text}`);
        else if (isWrite) written.push(name);
      } catch (error) {
        failures.push(`${isWrite ? "write" : "read"}: ${error}`);
      }
      found[isWrite ? "writes" : "reads"] += 1;
    }
  });
  const requests = () => found.reads + found.writes;
  const someRequests = async () => {
    const before = requests();
    await expect.poll(requests, { timeout: 60_000 }).toBeGreaterThan(before + REQUESTS);
  };

  await someRequests();
  for (const old of instances.services) {
    expect(await old.stop()).toBe(0);
    await balancer.remove(old.url);
    const next = await startService({
      dataDir: testFolder(),
      env: {
        ...SETTINGS,
        GATEHOUSE_DATABASE_URL: instances.databaseUrl,
        GATEHOUSE_SECRET: INSTANCE_SECRET,
      },
    });
    onTestFinished(async () => void (await next.kill()));
    balancer.add(next.url);
    await expect.poll(() => balancer.ready, { timeout: 60_000 }).toContain(next.url);
    await someRequests();
  }
  isOver = true;
  await Promise.all(clients);

  expect(failures).toEqual([]);
  expect(requests()).toBeGreaterThan(4 * REQUESTS);
  const names = async (statement: string) =>
    (await query<{ name: string }>(instances.databaseUrl, statement)).map(({ name }) => name).sort();
  written.sort();
  expect(await names('SELECT name FROM "ApiKey"')).toEqual(written);
  // The audit trail has an entry for each write, so that it also shows a write that ran twice.
  const entries = `SELECT after::json->>'name' AS name FROM "AuditEntry" WHERE operation = 'createApiKey'`;
  expect(await names(entries)).toEqual(written);
});
