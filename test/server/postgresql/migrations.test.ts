import { Client } from "pg";
import { expect, onTestFinished, test } from "vitest";
import { difference } from "../../../server/db/migrations/schemas.ts";
import {
  emptyPostgresql,
  newPostgresql,
  postgresqlAddress,
  type TestPostgresql,
} from "../../support/postgresql/database.ts";

async function connect({ url, drop }: TestPostgresql): Promise<Client> {
  onTestFinished(drop);
  const client = new Client(url);
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

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
  const address = postgresqlAddress() ?? "";
  const [migrated, created] = [
    await connect(await newPostgresql(address)),
    await connect(await emptyPostgresql(address)),
  ];
  await created.query(await difference("postgresql", undefined));
  const expected = await tablesOf(created);
  expect(expected.length).toBeGreaterThan(200);
  expect(await tablesOf(migrated), "run `node server/db/migrations/diff.ts <name>`").toEqual(expected);
});
