import type { Client } from "pg";
import { describe, expect, test, vi } from "vitest";
import type { MigrationOptions, OlderInstance } from "../../../server/db/Database.ts";
import { DatabaseError } from "../../../server/db/DatabaseError.ts";
import {
  type Migration,
  migrationOf,
  migrationsFolder,
  readMigrations,
} from "../../../server/db/migrations/migrations.ts";
import { difference } from "../../../server/db/migrations/schemas.ts";
import { TEXT_CHECKSUMS } from "../../../server/db/migrations/textChecksums.ts";
import { migratePostgresql } from "../../../server/db/postgresql/migrate.ts";
import { OLD_RECORDINGS } from "../db/oldRecordings.ts";
import { connect, emptyDatabase, newDatabase } from "./clients.ts";

/**
 * Returns the columns, constraints and indexes of the service's tables. Omits the index that the service creates at its
 * start.
 */
async function tablesOf(client: Client): Promise<object[]> {
  const read = async (query: string): Promise<object[]> => (await client.query(query)).rows;
  return [
    ...(await read(
      `SELECT table_name, column_name, data_type, datetime_precision, column_default, is_nullable
       FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
       WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND table_name <> '_migration' ORDER BY 1, 2`,
    )),
    ...(await read(
      `SELECT conrelid::regclass::text AS of, conname, pg_get_constraintdef(oid) FROM pg_constraint
       WHERE connamespace = 'public'::regnamespace AND conrelid <> COALESCE(to_regclass('"_migration"'), 0) ORDER BY 1, 2`,
    )),
    ...(await read(
      `SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename <> '_migration'
       AND indexname <> 'Device_name_trgm_idx' ORDER BY 1`,
    )),
  ];
}

test("the migrations create the tables of the models", async () => {
  const [migrated, created] = [await connect(await newDatabase()), await connect(await emptyDatabase())];
  await created.query(await difference("postgresql", undefined));
  const expected = await tablesOf(created);
  expect(expected.length).toBeGreaterThan(200);
  expect(await tablesOf(migrated), "run `node server/db/migrations/diff.ts <name>`").toEqual(expected);
});

describe("a migration while instances of an older version run", () => {
  const all = readMigrations(migrationsFolder("postgresql"));
  const present = all.at(-1)?.name ?? "";
  const expand = migrationOf(
    "9001_expand",
    `-- oldest-beside: ${present}\nCREATE TABLE "Expanded" ("id" TEXT)`,
  );
  const contract = migrationOf("9002_contract", '-- oldest-beside: 9002_contract\nDROP TABLE "Expanded"');

  /** Creates a database with the given migrations, and returns functions that use it. */
  async function migrated(migrations: readonly Migration[]) {
    const url = await emptyDatabase();
    const client = await connect(url);
    const config = { connectionString: url };
    const migrate = (next: readonly Migration[], options?: MigrationOptions) =>
      migratePostgresql(config, next, { patience: 0, ...options });
    await migrate(migrations);
    return {
      url,
      client,
      migrate,
      /** Writes the heartbeat of an instance, which was sent the given number of seconds ago. */
      async sign(schema: string | null, secondsAgo = 0) {
        await client.query(
          `INSERT INTO "Instance" ("id", "peerUrl", "lastSeen", "schema")
           VALUES ('older', 'http://10.0.0.7:8081', timezone('utc', clock_timestamp()) - make_interval(secs => $1), $2)
           ON CONFLICT ("id") DO UPDATE SET "lastSeen" = excluded."lastSeen", "schema" = excluded."schema"`,
          [secondsAgo, schema],
        );
      },
    };
  }

  test("is applied beside an instance that it allows", async () => {
    const { migrate, sign } = await migrated(all);
    await sign(present);
    expect(await migrate([...all, expand])).toEqual([expand.name]);
  });

  test.each([
    ["an older schema", present],
    ["no registered schema", null],
  ])("is not applied beside a running instance with %s", async (_, schema) => {
    const { client, migrate, sign } = await migrated(all);
    await sign(schema);
    const refused = migrate([...all, expand, contract]);
    await expect(refused).rejects.toThrow(DatabaseError);
    await expect(refused).rejects.toThrow(
      /\(9001_expand, 9002_contract\).* are running:\n {2}instance older \(http:\/\/10\.0\.0\.7:8081\): .*\d+ more seconds\n.*--migrate-anyway/s,
    );
    await expect(refused).rejects.toThrow(`: ${schema ?? "no registered schema"}, is treated as running`);
    const { rows } = await client.query(`SELECT to_regclass('"Expanded"') AS "name"`);
    expect(rows).toEqual([{ name: null }]);
  });

  test("is applied when the last heartbeat of the instance is older than its lifetime", async () => {
    const { migrate, sign } = await migrated(all);
    await sign(null, 61);
    expect(await migrate([...all, expand, contract])).toEqual([expand.name, contract.name]);
  });

  test("is applied at once if the operator accepts it", async () => {
    const { migrate, sign } = await migrated(all);
    await sign(null);
    const onWait = vi.fn();
    const options = { anyway: true, onWait };
    expect(await migrate([...all, expand, contract], options)).toEqual([expand.name, contract.name]);
    expect(onWait).not.toHaveBeenCalled();
  });

  test("waits until the instance has ended, and other processes start meanwhile", async () => {
    const { client, migrate, sign } = await migrated(all);
    await sign(present);
    const waiting = Promise.withResolvers<readonly OlderInstance[]>();
    const next = [...all, expand, contract];
    const later = migrate(next, { patience: 60_000, onWait: waiting.resolve });
    expect(await waiting.promise).toEqual([
      { id: "older", peerUrl: "http://10.0.0.7:8081", schema: present, secondsLeft: expect.any(Number) },
    ]);
    expect(await migrate(all)).toEqual([]);
    await client.query('DELETE FROM "Instance"');
    expect(await later).toEqual([expand.name, contract.name]);
  });

  test("is repeated if it has a deadlock with a transaction of a running instance", async () => {
    const { url, client: reader, migrate } = await migrated(all);
    const holder = await connect(url);
    // The first statement locks a table, the second one waits for the holder, and the third one closes the circle.
    const locks = ['LOCK "User"', "SELECT pg_advisory_xact_lock(4711)", 'LOCK "Device"'];
    const locking = migrationOf("9001_locks", `-- oldest-beside: ${present}\n${locks.join(";\n")}`);
    await holder.query("SELECT pg_advisory_lock(4711)");
    // Only the migration looks for deadlocks, so PostgreSQL ends its transaction.
    await reader.query("SET deadlock_timeout = '1h'");
    await reader.query('BEGIN; SELECT FROM "Device"');
    const applied = migrate([...all, locking]);
    const waits = async (type: string) =>
      (
        await holder.query(
          "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND wait_event = $1",
          [type],
        )
      ).rowCount;
    await expect.poll(() => waits("advisory"), { timeout: 30_000 }).toBe(1);
    const read = reader.query('SELECT FROM "User"; COMMIT');
    await expect.poll(() => waits("relation"), { timeout: 30_000 }).toBe(1);
    await holder.query("SELECT pg_advisory_unlock(4711)");
    await read;
    expect(await applied).toEqual([locking.name]);
  });

  test("is not applied beside an instance of the first versions, which have no column for the schema", async () => {
    const old = all.slice(0, 5);
    const { client, migrate } = await migrated(old);
    // The first versions have stored the checksums of the texts, and no oldest schema.
    await client.query('ALTER TABLE "_migration" DROP COLUMN "oldestBeside"');
    for (const [name, [, checksum]] of Object.entries(TEXT_CHECKSUMS)) {
      await client.query('UPDATE "_migration" SET "checksum" = $1 WHERE "name" = $2', [checksum, name]);
    }
    const sign = (secondsAgo: number) =>
      client.query(
        `INSERT INTO "Instance" ("id", "lastSeen") VALUES ('first', timezone('utc', now()) - make_interval(secs => $1))
         ON CONFLICT ("id") DO UPDATE SET "lastSeen" = excluded."lastSeen"`,
        [secondsAgo],
      );
    await sign(0);
    await expect(migrate(all)).rejects.toThrow("instance first: no registered schema");
    await sign(61);
    expect(await migrate(all)).toEqual(all.slice(5).map(({ name }) => name));
    const { rows } = await client.query('SELECT "name", "oldestBeside" FROM "_migration" ORDER BY 1');
    expect(rows).toEqual(all.map(({ name, oldestBeside }) => ({ name, oldestBeside })));
  });
});

test("the sizes of recordings begin with the sizes of the existing recordings", async () => {
  const url = await emptyDatabase();
  const client = await connect(url);
  const migrations = readMigrations(migrationsFolder("postgresql"));
  const sizes = migrations.findIndex(({ name }) => name === "0008_recording_sizes");
  const config = { connectionString: url };
  await migratePostgresql(config, migrations.slice(0, sizes));
  await client.query(OLD_RECORDINGS);
  await migratePostgresql(config, migrations);
  const size = async () =>
    Number(
      (await client.query(`SELECT SUM("size") AS size FROM "RecordingSize" WHERE "tenantId" = 't'`)).rows[0]
        .size,
    );
  expect(await size()).toBe(5_000_000_000);
  await client.query(`UPDATE "Session" SET "recorded" = false WHERE "uid" = 's1'`);
  expect(await size()).toBe(3_000_000_000);
});
