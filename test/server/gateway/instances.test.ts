import { tmpdir } from "node:os";
import Fastify from "fastify";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { requireSchema } from "../../../server/app.ts";
import { MIGRATION_LOCK } from "../../../server/db/Database.ts";
import { migrationsFolder, readMigrations } from "../../../server/db/migrations/migrations.ts";
import { providerOf } from "../../../server/db/sql/sql.ts";
import { Instances, SupersededError } from "../../../server/gateway/agentTunnels/Instances.ts";
import { Gateway } from "../../../server/gateway/Gateway.ts";
import { answerErrors } from "../../../server/http/listener/errorHandler.ts";
import { makeMetrics } from "../../../server/metrics.ts";
import { turnableTime, withSharedApp } from "../http/appOfTest.ts";

const app = withSharedApp();
const SCHEMA = readMigrations(migrationsFolder("postgresql")).at(-1)?.name ?? "";
const silent = pino({ level: "silent" });
const isSqlite = () => providerOf(app.services.db) === "sqlite";
beforeEach(() => app.services.db.instance.deleteMany());

/** Creates an instance whose clock is ahead by the given number of milliseconds. */
const instance = (ahead = 0): Instances => {
  const now = () => new Date(Date.now() + ahead);
  const schema = isSqlite() ? undefined : SCHEMA;
  return new Instances({ ...app.services, now }, { schema }, () => silent);
};
const known = async (): Promise<string[]> =>
  (await app.services.db.instance.findMany()).map(({ id }) => id).sort();

/** Changes the last sign of life of an instance to an old time, as if the instance had ended. */
const outdate = ({ id }: Instances) =>
  app.services.db.instance.update({ where: { id }, data: { lastSeen: new Date(Date.now() - 300_000) } });

test("an instance whose clock is ahead clears no other instance", async (context) => {
  context.skip(isSqlite(), "one process at a time uses an SQLite file");
  const pass = turnableTime();
  const [right, ahead] = [instance(), instance(75_000)];
  await right.sign();
  for (let signs = 0; signs < 8; signs += 1) {
    await ahead.sign();
    pass(10_000);
  }
  expect(await known()).toEqual([right.id, ahead.id].sort());
  await outdate(right);
  await ahead.sign();
  expect(await known()).toEqual([ahead.id]);
});

test("an instance clears other instances only after its own signs of life have succeeded for a minute", async (context) => {
  context.skip(isSqlite(), "one process at a time uses an SQLite file");
  const pass = turnableTime();
  const [one, other] = [instance(), instance()];
  await other.sign();
  await outdate(other);
  const signs = async (count: number) => {
    for (let sign = 0; sign < count; sign += 1) {
      await one.sign();
      pass(10_000);
    }
  };
  await signs(6);
  // After an outage of 75 seconds, no instance has a recent sign of life, so `one` cannot know whether `other` still
  // runs.
  pass(75_000);
  await signs(6);
  expect(await known()).toEqual([one.id, other.id].sort());
  await signs(1);
  expect(await known()).toEqual([one.id]);
});

test("a process on SQLite clears all earlier instances, which have ended", async (context) => {
  context.skip(!isSqlite(), "several processes use a PostgreSQL database");
  const [one, other] = [instance(), instance()];
  await one.sign();
  await other.sign();
  expect(await known()).toEqual([other.id]);
});

describe("an instance whose database is migrated by a newer version", () => {
  beforeEach((context) => context.skip(isSqlite(), "one process at a time uses an SQLite file"));
  afterEach(async () => {
    if (!isSqlite()) await app.services.db.$executeRaw`DELETE FROM "_migration" WHERE "name" = ${NEWER}`;
  });

  const NEWER = "9999_newer";
  const migrate = (oldestBeside: string) =>
    app.services.db.$executeRaw`INSERT INTO "_migration" ("name", "checksum", "appliedAt", "oldestBeside")
      VALUES (${NEWER}, '', '', ${oldestBeside})`;
  const REFUSED = "a newer version of the service has replaced it";

  test("registers its schema", async () => {
    const one = instance();
    await one.sign();
    expect(await app.services.db.instance.findMany()).toMatchObject([{ id: one.id, schema: SCHEMA }]);
  });

  test("continues beside a schema that allows it", async () => {
    const pass = turnableTime();
    const one = instance();
    await migrate(SCHEMA);
    await one.sign();
    await one.requireSchema();
    pass(61_000);
    await one.requireSchema();
  });

  test("ends at its next heartbeat beside a schema that does not allow it", async () => {
    const one = instance();
    await one.sign();
    await migrate(NEWER);
    await one.sign();
    expect((await one.superseded).message).toMatch(
      /with which only the schemas 9999_newer and newer can run/,
    );
    await expect(one.requireSchema()).rejects.toThrow(REFUSED);
  });

  test("refuses requests and logins before it ends, and /healthz responds", async () => {
    const services = { ...app.services, metrics: makeMetrics() };
    const gateway = new Gateway(services, { folder: tmpdir(), schema: SCHEMA, log: () => silent });
    const probed = Fastify();
    onTestFinished(() => probed.close());
    requireSchema(probed, gateway);
    answerErrors(probed);
    for (const path of ["/healthz", "/readyz"]) probed.get(path, async () => "ok");
    const statuses = () =>
      Promise.all(["/healthz", "/readyz"].map(async (url) => (await probed.inject({ url })).statusCode));
    const question = {
      login: "root",
      device: { uid: "d" },
      address: "192.0.2.1",
      key: undefined,
      firewall: true,
    };
    await gateway.instances.sign();
    expect(await statuses()).toEqual([200, 200]);
    expect(await gateway.admit(question)).toMatchObject({ refused: "device" });
    await migrate(NEWER);
    await gateway.instances.sign();
    expect(await statuses()).toEqual([200, 503]);
    expect(await gateway.admit(question)).toEqual({
      refused: "busy",
      reason: expect.stringContaining(REFUSED),
    });
  });

  test("does not start beside a schema that does not allow it", async () => {
    await migrate(NEWER);
    await expect(instance().start()).rejects.toThrow(SupersededError);
  });

  test("reads the schema if it cannot write its heartbeat, because the schema can be the cause", async () => {
    const { db } = app.services;
    await migrate(NEWER);
    await db.$executeRaw`ALTER TABLE "Instance" RENAME COLUMN "schema" TO "away"`;
    await expect(instance().start())
      .rejects.toThrow(SupersededError)
      .finally(() => db.$executeRaw`ALTER TABLE "Instance" RENAME COLUMN "away" TO "schema"`);
  });

  test("reads the schema before it admits again, if it has sent no heartbeat for a minute", async () => {
    const pass = turnableTime();
    const one = instance();
    await one.sign();
    await migrate(NEWER);
    await one.requireSchema();
    pass(60_000);
    await expect(one.requireSchema()).rejects.toThrow(REFUSED);
  });

  test("admits nothing while it cannot read the schema", async () => {
    const one = instance();
    const { db } = app.services;
    await db.$executeRaw`ALTER TABLE "_migration" RENAME COLUMN "oldestBeside" TO "away"`;
    await expect(one.requireSchema())
      .rejects.toThrow("oldestBeside")
      .finally(() => db.$executeRaw`ALTER TABLE "_migration" RENAME COLUMN "away" TO "oldestBeside"`);
    await one.requireSchema();
  });

  // The migration has not waited for this instance, because the instance had no recent heartbeat when it began.
  test("trusts no heartbeat that it has sent during a migration after a minute without one", async () => {
    const one = instance();
    await app.services.db.$transaction(async (tx) => {
      await tx.$executeRaw`SELECT FROM pg_advisory_xact_lock(${MIGRATION_LOCK})`;
      await one.sign();
      await expect(one.requireSchema()).rejects.toThrow("may be migrating the database");
    });
    await one.requireSchema();
  });

  test("trusts no heartbeat that it has sent before a migration that ended meanwhile", async () => {
    const pass = turnableTime();
    const one = instance();
    await one.sign();
    pass(60_000);
    await migrate(NEWER);
    await expect(one.requireSchema()).rejects.toThrow(REFUSED);
  });
});
