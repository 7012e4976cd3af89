import { randomBytes } from "node:crypto";
import { Client } from "pg";
import { openDatabase } from "../../../server/db/openDatabase.ts";

/** A database of its own on the tests' PostgreSQL. */
export interface TestPostgresql {
  readonly url: string;
  /** Removes it, whoever is still connected. */
  drop(): Promise<void>;
}

/** The address of the tests' PostgreSQL; undefined where the tests run on SQLite. */
export const postgresqlAddress = (): string | undefined => process.env.GATEHOUSE_TEST_POSTGRESQL;

async function run(address: string, statement: string): Promise<void> {
  const client = new Client(address);
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

/** The database whose copies {@link newPostgresql} makes: with the service's layout, and without rows. */
const PREPARED = "prepared";

function urlOf(address: string, database: string): string {
  const url = new URL(address);
  url.pathname = database;
  return url.toString();
}

/** Makes what {@link newPostgresql} copies. */
export async function preparePostgresql(address: string): Promise<void> {
  await run(address, `CREATE DATABASE ${PREPARED}`);
  await (await openDatabase({ url: urlOf(address, PREPARED), connections: 1 })).close();
}

async function copyOf(address: string, template: string): Promise<TestPostgresql> {
  const name = `test_${randomBytes(8).toString("hex")}`;
  // Files are copied in a tenth of the time that it takes to log their pages.
  await run(address, `CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY FILE_COPY`);
  return {
    url: urlOf(address, name),
    drop: () => run(address, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
  };
}

/** Makes a database as the service finds it from its second start on. */
export const newPostgresql = (address: string): Promise<TestPostgresql> => copyOf(address, PREPARED);

/** Makes a database without anything in it. */
export const emptyPostgresql = (address: string): Promise<TestPostgresql> => copyOf(address, "template1");
