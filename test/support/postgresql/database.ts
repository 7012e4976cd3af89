import { randomBytes } from "node:crypto";
import { Client } from "pg";
import { openDatabase } from "../../../server/db/openDatabase.ts";

/** A database on the PostgreSQL server of a test run. */
export interface TestPostgresql {
  readonly url: string;
  /** Closes all connections to the database, and drops it. */
  drop(): Promise<void>;
}

/** The address of the PostgreSQL server of this test run. Undefined if the tests run on SQLite. */
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

/** The name of the template database for {@link newPostgresql}. The template has the service's schema and no rows. */
const PREPARED = "prepared";

function urlOf(address: string, database: string): string {
  const url = new URL(address);
  url.pathname = database;
  return url.toString();
}

/** Creates the template database for {@link newPostgresql}. */
export async function preparePostgresql(address: string): Promise<void> {
  await run(address, `CREATE DATABASE ${PREPARED}`);
  await (await openDatabase({ url: urlOf(address, PREPARED), connections: 1 })).close();
}

async function copyOf(address: string, template: string): Promise<TestPostgresql> {
  const name = `test_${randomBytes(8).toString("hex")}`;
  // The strategy FILE_COPY takes a tenth of the time of the default strategy, which logs the pages.
  await run(address, `CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY FILE_COPY`);
  return {
    url: urlOf(address, name),
    drop: () => run(address, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
  };
}

/** Creates a database that is in the same state as after the service's first start. */
export const newPostgresql = (address: string): Promise<TestPostgresql> => copyOf(address, PREPARED);

/** Creates an empty database. */
export const emptyPostgresql = (address: string): Promise<TestPostgresql> => copyOf(address, "template1");
