import { Client, type ClientConfig } from "pg";
import { onTestFinished } from "vitest";
import { emptyPostgresql, newPostgresql, postgresqlAddress } from "../../support/postgresql/database.ts";

/** Creates a database without tables, which is dropped when the calling test ends. Returns its URL. */
export const emptyDatabase = (): Promise<string> => forTest(emptyPostgresql(postgresqlAddress() ?? ""));

/** Creates a database with the tables of the service, which is dropped when the calling test ends. Returns its URL. */
export const newDatabase = (): Promise<string> => forTest(newPostgresql(postgresqlAddress() ?? ""));

async function forTest(created: ReturnType<typeof newPostgresql>): Promise<string> {
  const { url, drop } = await created;
  onTestFinished(drop);
  return url;
}

/** Opens a connection, which ends when the calling test ends. */
export async function connect(url: string, config: ClientConfig = {}): Promise<Client> {
  const client = new Client({ connectionString: url, ...config });
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

/** Runs a statement on a connection of its own. Returns the rows. */
export async function query<Row>(
  url: string,
  statement: string,
  values: readonly unknown[] = [],
): Promise<Row[]> {
  const client = new Client(url);
  await client.connect();
  try {
    return (await client.query(statement, [...values])).rows as Row[];
  } finally {
    await client.end();
  }
}
