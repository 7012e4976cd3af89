import { randomBytes } from "node:crypto";
import { Client } from "pg";
import { openDatabase } from "../../../server/db/openDatabase.ts";

/** A database on the tests' PostgreSQL server. */
export interface TestPostgresql {
  readonly url: string;
  /** Drops the database and its connections. */
  drop(): Promise<void>;
}

/** The address of the tests' PostgreSQL server; undefined if the tests run on SQLite. */
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

/** The template of {@link newPostgresql}: with the service's schema, and without rows. */
const PREPARED = "prepared";

function urlOf(address: string, database: string): string {
  const url = new URL(address);
  url.pathname = database;
  return url.toString();
}

/** Creates the template of {@link newPostgresql}. */
export async function preparePostgresql(address: string): Promise<void> {
  await run(address, `CREATE DATABASE ${PREPARED}`);
  await (await openDatabase({ url: urlOf(address, PREPARED), connections: 1 })).close();
}

async function copyOf(address: string, template: string): Promise<TestPostgresql> {
  const name = `test_${randomBytes(8).toString("hex")}`;
  // FILE_COPY takes a tenth of the time of logging the pages.
  await run(address, `CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY FILE_COPY`);
  return {
    url: urlOf(address, name),
    drop: () => run(address, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
  };
}

/** Creates a database in the state before the service's second start. */
export const newPostgresql = (address: string): Promise<TestPostgresql> => copyOf(address, PREPARED);

/** Creates an empty database. */
export const emptyPostgresql = (address: string): Promise<TestPostgresql> => copyOf(address, "template1");
