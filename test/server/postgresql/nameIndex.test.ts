import { expect, onTestFinished, test } from "vitest";
import { migrationsFolder, readMigrations } from "../../../server/db/migrations/migrations.ts";
import { openDatabase } from "../../../server/db/openDatabase.ts";
import { migratePostgresql } from "../../../server/db/postgresql/migrate.ts";
import { readRows, sql } from "../../../server/db/sql/sql.ts";
import { nameIndexLookup } from "../../../server/features/devices/nameIndexLookup.ts";
import { emptyPostgresql, postgresqlAddress } from "../../support/postgresql/database.ts";
import { emptyDatabase, query } from "./clients.ts";

const TENANT = "00000000-0000-4000-8000-000000000001";

/**
 * Creates a database and a database user for the service. This user can change the tables, but cannot create an
 * extension.
 */
async function withoutExtensions() {
  const { url, drop } = await emptyPostgresql(postgresqlAddress() ?? "");
  const name = new URL(url).pathname.slice(1);
  const role = `limited_${name}`;
  await query(
    url,
    `CREATE ROLE ${role} LOGIN; GRANT ALL ON SCHEMA public TO ${role}; GRANT CREATE ON DATABASE ${name} TO ${role}`,
  );
  onTestFinished(async () => {
    await drop();
    await query(postgresqlAddress() ?? "", `DROP ROLE ${role}`);
  });
  const limited = new URL(url);
  limited.username = role;
  await migratePostgresql(
    { connectionString: limited.toString() },
    readMigrations(migrationsFolder("postgresql")),
  );
  await query(url, `REVOKE CREATE ON DATABASE ${name} FROM ${role}`);
  return { url, limited: limited.toString() };
}

const indexes = (url: string) =>
  query(url, `SELECT indexname FROM pg_indexes WHERE indexname = 'Device_name_trgm_idx'`);

/**
 * Opens the database and searches for a name. Returns the reason why no index of names exists, or undefined if it
 * exists.
 */
async function open(url: string): Promise<string | undefined> {
  const { client, close, namesUnindexed } = await openDatabase({ url, connections: 2 });
  const lead = nameIndexLookup({ db: client }, TENANT, "gate");
  expect(await readRows(client, lead?.candidates ?? sql.false).finally(close)).toEqual([]);
  return namesUnindexed;
}

test("works without the extension if the database rejects it, and uses it once an operator has added it", async () => {
  const { url, limited } = await withoutExtensions();
  expect(await open(limited)).toMatch(/permission denied to create extension "pg_trgm"/);
  expect(await open(limited)).toMatch(/permission denied/);
  expect(await indexes(url)).toEqual([]);
  await query(url, "CREATE EXTENSION pg_trgm");
  expect(await open(limited)).toBeUndefined();
  expect(await indexes(url)).toHaveLength(1);
  expect(await open(limited)).toBeUndefined();
});

test("one of several instances that start together creates the index", async () => {
  const url = await emptyDatabase();
  expect(await Promise.all([open(url), open(url), open(url)])).toEqual(Array(3).fill(undefined));
  expect(await indexes(url)).toHaveLength(1);
});
