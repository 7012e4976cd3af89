import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { migrationsFolder, readMigrations } from "../../../server/db/migrations/migrations.ts";
import { migratePostgresql } from "../../../server/db/postgresql/migrate.ts";
import { call } from "../../support/call.ts";
import { INSTANCE_SECRET, INTERNAL_TOKEN, type Instances, startPeers } from "../../support/instances.ts";
import { type NewerMigration, newerServer, PRESENT_SCHEMA } from "../../support/newerServer.ts";
import { postgresqlAddress } from "../../support/postgresql/database.ts";
import { type Relay, startRelay } from "../../support/relay.ts";
import { type LogLine, type ServiceOptions, startService, type TestService } from "../../support/service.ts";
import {
  newKey,
  openFolder,
  publicHalf,
  ssh,
  sshPortOf,
  startAgent,
  type TestAgent,
  withoutSsh,
} from "../../support/sshFleet.ts";
import { connect, emptyDatabase } from "./clients.ts";

/** Columns that an older version ignores, in tables that each request and each login read. */
const EXPAND: NewerMigration = {
  name: "9001_expand",
  oldestBeside: PRESENT_SCHEMA,
  sql: ["User", "Namespace", "Member", "Device", "PublicKey", "FirewallRule", "Session", "Instance"]
    .map((table) => `ALTER TABLE "${table}" ADD COLUMN "added" TEXT NOT NULL DEFAULT '';`)
    .join("\n"),
};
/** A column moves, so a version that does not know the new column must not run. */
const CONTRACT: NewerMigration = {
  name: "9002_contract",
  oldestBeside: "9002_contract",
  sql: 'ALTER TABLE "PublicKey" DROP COLUMN "added";',
};
const CONTRACT_AGAIN: NewerMigration = {
  name: "9003_contract",
  oldestBeside: "9003_contract",
  sql: 'ALTER TABLE "Device" DROP COLUMN "added";',
};

const WAITING = "waiting for instances of an older version to end, before the database is migrated";

/** Starts a service that may wait for other instances. `waits` resolves with the log line when it begins to wait. */
function starting(options: ServiceOptions) {
  const waiting = Promise.withResolvers<LogLine>();
  const service = startService({
    ...options,
    onLog: (line) => {
      if (line.msg === WAITING) waiting.resolve(line);
    },
  });
  // A test that fails before it uses the service reports its own error.
  service.catch(() => {});
  return { service, waits: Promise.race([waiting.promise, service.then(() => "the service started")]) };
}

const migrationsOf = (service: TestService): unknown =>
  service.logs().find(({ msg }) => msg === "database migrated")?.migrations;

const why = withoutSsh;

describe.skipIf(why)(
  `an upgrade of instances on PostgreSQL${why ? ` (${why})` : ""}`,
  // Starts several services, and an older service ends only at its next heartbeat.
  { tags: ["long"], timeout: 400_000 },
  () => {
    const folder = openFolder();
    let instances: Instances;
    let older: TestService;
    let relay: Relay;
    let newer: TestService | undefined;
    let agent: TestAgent;
    let token: string;
    let login: { readonly to: string; readonly key: string };

    const environment = (more: Readonly<Record<string, string>> = {}) => ({
      GATEHOUSE_DATABASE_URL: instances.databaseUrl,
      GATEHOUSE_SECRET: INSTANCE_SECRET,
      ...more,
    });

    beforeAll(async () => {
      instances = await startPeers(postgresqlAddress() ?? "", 1, {});
      older = instances.services[0] as TestService;
      const user = await older.setup();
      const { body } = await call(older, "POST /api/login", { body: user });
      token = body.token;
      const namespaces = await call(older, "GET /api/namespaces", { token });
      const { name, tenant_id: tenant } = namespaces.body[0];
      const key = newKey(folder.path, "key");
      login = { to: `root@${name}.edge-1`, key };
      agent = await startAgent({ url: older.url, tenant, hostname: "edge-1", folder: folder.path });
      expect((await call(older, `PATCH /api/devices/${agent.uid}/accept`, { token })).status).toBe(200);
      const everything = { username: ".*", filter: { hostname: ".*" } };
      const created = await call(older, "POST /api/sshkeys/public-keys", {
        token,
        body: { name: "key", data: publicHalf(key), ...everything },
      });
      expect(created.status).toBe(200);
      relay = await startRelay(() => {
        const line = newer?.logs().find(({ msg }) => msg === "listening for internal operations");
        return Number(new URL(String(line?.address)).port);
      });
    });
    afterAll(async () => {
      await agent?.stop();
      await newer?.stop();
      relay?.stop();
      await instances?.stop();
      folder.remove();
    });

    /** Reads, writes and logs in at an instance until `stop` is called. */
    function useAll(service: TestService) {
      let isOver = false;
      const failures: unknown[] = [];
      const done = { reads: 0, writes: 0, logins: 0 };
      const expectOk = (
        what: string,
        { status, body }: { readonly status: number; readonly body?: unknown },
      ) => {
        if (status !== 200) failures.push([what, status, body]);
      };
      const until = async (kind: keyof typeof done, work: () => Promise<void>) => {
        while (!isOver) {
          await work().catch((error: unknown) => failures.push([kind, error]));
          done[kind] += 1;
        }
      };
      const rule = {
        action: "deny",
        active: true,
        priority: 9,
        source_ip: "^192\\.0\\.2\\.1$",
        username: ".*",
      };
      const running = Promise.all([
        until("reads", async () => {
          for (const path of [
            "/api/devices",
            "/api/namespaces",
            "/api/firewall/rules",
            "/api/sessions",
            "/readyz",
          ]) {
            expectOk(path, await call(service, `GET ${path}`, { token }));
          }
        }),
        until("writes", async () => {
          const body = { ...rule, filter: { hostname: ".*" } };
          const created = await call(service, "POST /api/firewall/rules", { token, body });
          expectOk("create", created);
          expectOk(
            "delete",
            await call(service, `DELETE /api/firewall/rules/${created.body?.id}`, { token }),
          );
        }),
        until("logins", async () => {
          const result = await ssh({ ...login, port: sshPortOf(service), command: "echo in" });
          if (result.code !== 0 || result.stdout !== "in\n") failures.push(["login", result]);
        }),
      ]);
      return {
        failures,
        /** Waits until each kind of work has been done a few more times. */
        async more() {
          const before = { ...done };
          const least = () =>
            Math.min(done.reads - before.reads, done.writes - before.writes, done.logins - before.logins);
          await expect.poll(least, { timeout: 150_000 }).toBeGreaterThan(3);
        },
        async stop() {
          isOver = true;
          await running;
        },
      };
    }

    it("adds columns while an older instance serves requests and logins, and both serve afterwards", {
      tags: ["long"],
    }, async () => {
      const before = useAll(older);
      await before.more();
      newer = await startService({
        command: newerServer(join(folder.path, "expanded"), [EXPAND]),
        env: environment({
          GATEHOUSE_INTERNAL_PORT: "0",
          GATEHOUSE_INTERNAL_TOKEN: INTERNAL_TOKEN,
          GATEHOUSE_PEER_URL: relay.url,
          GATEHOUSE_SSH_PORT: "0",
        }),
      });
      expect(migrationsOf(newer)).toEqual([EXPAND.name]);
      const beside = useAll(newer);
      await Promise.all([before.more(), beside.more()]);
      await Promise.all([before.stop(), beside.stop()]);
      expect([...before.failures, ...beside.failures]).toEqual([]);
    });

    it("removes a column only after the older instances have ended", { tags: ["long"] }, async () => {
      const command = newerServer(join(folder.path, "contracted"), [EXPAND, CONTRACT]);
      const { service, waits } = starting({ command, env: environment() });
      expect(await waits).toMatchObject({
        instances: [
          { schema: expect.any(String), secondsLeft: expect.any(Number) },
          { schema: expect.any(String), peerUrl: expect.any(String) },
        ],
      });
      for (const running of [older, newer as TestService]) {
        expect((await call(running, "GET /api/devices", { token })).status).toBe(200);
      }
      await older.stop();
      await newer?.stop();
      newer = await service;
      expect(migrationsOf(newer)).toEqual([CONTRACT.name]);
      expect((await call(newer, "GET /api/devices", { token })).status).toBe(200);
    });

    it("removes a column at once if the operator accepts it, and the older instance ends with an error", {
      tags: ["long"],
    }, async () => {
      const outdated = newer as TestService;
      newer = await startService({
        command: newerServer(join(folder.path, "anyway"), [EXPAND, CONTRACT, CONTRACT_AGAIN]),
        flags: ["--migrate-anyway", "on"],
        env: environment(),
      });
      expect(migrationsOf(newer)).toEqual([CONTRACT_AGAIN.name]);
      expect(await outdated.ended).toBe(1);
      const fatal = outdated.logs().filter(({ level }) => level === 60);
      expect(fatal.map(({ msg }) => msg)).toEqual([
        expect.stringContaining("with which only the schemas 9003_contract and newer can run"),
      ]);
      expect((await call(newer, "GET /api/devices", { token })).status).toBe(200);
    });
  },
);

it("does not start beside an instance of the first versions until its last heartbeat is a minute old", {
  timeout: 120_000,
}, async () => {
  const url = await emptyDatabase();
  const first = readMigrations(migrationsFolder("postgresql")).slice(0, 5);
  await migratePostgresql({ connectionString: url }, first);
  const connection = await connect(url);
  const sign = (secondsAgo: number) =>
    connection.query(
      `INSERT INTO "Instance" ("id", "lastSeen") VALUES ('first', timezone('utc', now()) - make_interval(secs => $1))
       ON CONFLICT ("id") DO UPDATE SET "lastSeen" = excluded."lastSeen"`,
      [secondsAgo],
    );
  await sign(0);
  const env = { GATEHOUSE_DATABASE_URL: url, GATEHOUSE_SECRET: INSTANCE_SECRET };
  const { service, waits } = starting({ env });
  expect(await waits).toMatchObject({ instances: [{ id: "first", schema: null, peerUrl: null }] });
  await sign(61);
  const started = await service;
  onTestFinished(async () => void (await started.stop()));
  expect((await call(started, "GET /readyz")).status).toBe(200);
});
