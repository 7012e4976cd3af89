import { join } from "node:path";
import { onTestFinished } from "vitest";
import { type Database, type DatabaseLocation, openDatabase } from "../../../server/db/openDatabase.ts";
import { testFolder } from "../../support/folder.ts";
import { newPostgresql, postgresqlAddress } from "../../support/postgresql/database.ts";

/** Where a new database of the kind under test can be; removed when the test that asks for it has ended. */
export async function testLocation(): Promise<DatabaseLocation> {
  const address = postgresqlAddress();
  if (address === undefined) return { file: join(testFolder(), "gatehouse.db") };
  const { url, drop } = await newPostgresql(address);
  onTestFinished(drop);
  return { url, connections: 10 };
}

/** A new database, closed and removed when the test that asks for it has ended. */
export async function testDatabase(): Promise<Database> {
  const database = await openDatabase(await testLocation());
  onTestFinished(() => database.close());
  return database;
}
