import { rm } from "node:fs/promises";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { Database, DatabaseLocation } from "../../../server/db/Database.ts";
import { openDatabase } from "../../../server/db/openDatabase.ts";
import { makeDataDir } from "../../support/dataFolder.ts";
import { newPostgresql, postgresqlAddress } from "../../support/postgresql/database.ts";
import { newSqlite } from "../../support/sqlite.ts";

/** A database for one test. It has the tables that a service creates at its first start. */
interface NewDatabase {
  readonly location: DatabaseLocation;
  remove(): Promise<void>;
}

/** Creates a database of the kind that the test run uses: SQLite or PostgreSQL. */
export async function newDatabase(): Promise<NewDatabase> {
  const address = postgresqlAddress();
  if (address !== undefined) {
    const { url, drop } = await newPostgresql(address);
    return { location: { url, connections: 10 }, remove: drop };
  }
  const folder = await makeDataDir();
  const file = join(folder, "gatehouse.db");
  await newSqlite(file);
  return { location: { file }, remove: () => rm(folder, { recursive: true, force: true }) };
}

/** Opens a new database. It is closed and removed when the calling test ends. */
export async function testDatabase(): Promise<Database> {
  const { location, remove } = await newDatabase();
  onTestFinished(remove);
  const database = await openDatabase(location);
  onTestFinished(() => database.close());
  return database;
}
