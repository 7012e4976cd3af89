import { randomBytes } from "node:crypto";
import { Client } from "pg";

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

/** Makes an empty database. */
export async function newPostgresql(address: string): Promise<TestPostgresql> {
  const name = `test_${randomBytes(8).toString("hex")}`;
  await run(address, `CREATE DATABASE ${name}`);
  const url = new URL(address);
  url.pathname = name;
  return { url: url.toString(), drop: () => run(address, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`) };
}
