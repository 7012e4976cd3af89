import { MINUTE } from "@gatehouse-access/sdk/times";
import { PrismaPg } from "@prisma/adapter-pg";
import { reasonOf } from "../../OperatorError.ts";
import type { Database, MigrationOptions } from "../Database.ts";
import { DatabaseError } from "../DatabaseError.ts";
import { PrismaClient } from "../generated/postgresql/client.ts";
import type { PrismaClient as SharedClient } from "../generated/sqlite/client.ts";
import { migrationsFolder, readMigrations } from "../migrations/migrations.ts";
import { GroupCommit } from "../sql/groupCommit.ts";
import { indexNamesOnPostgresql } from "../sql/nameIndex.ts";
import { readDirectly } from "../sql/sql.ts";
import { writeDirectly } from "../sql/transaction.ts";
import { inMigrationTurn, migratePostgresql } from "./migrate.ts";
import { endSilence } from "./silence.ts";
import { beginSerializable, postgresqlSql, WIRE_TYPES } from "./sql.ts";
import { repeatingStalePlans, repeatStalePlans, StatementNames } from "./statementNames.ts";

/**
 * Maximum time to wait for data from PostgreSQL, in milliseconds. After this time, a connection attempt fails. A read
 * or write that waits on an open connection fails too.
 */
export const SILENCE_TIMEOUT = 10_000;
/**
 * Time after which the database cancels a statement, in milliseconds. This timeout prevents a statement from holding a
 * connection forever.
 */
const STATEMENT_TIMEOUT = MINUTE;
/** Time after which the database ends an idle transaction, in milliseconds. */
const IDLE_TRANSACTION_TIMEOUT = MINUTE;

/**
 * Makes PostgreSQL use an index instead of a sequential scan whenever an index exists. A serializable transaction that
 * scans a table conflicts with every write to the table, even in a different namespace. By default, PostgreSQL scans
 * small tables. It would also scan a large table with a plan that it cached when the table was small.
 */
const PLANNER = "-c enable_seqscan=off";

/**
 * Opens the PostgreSQL database: see `openDatabase`. With PostgreSQL's default settings, acknowledged transactions are
 * durable.
 */
export async function openPostgresqlDatabase(
  location: { readonly url: string; readonly connections: number; readonly silence?: number },
  options: MigrationOptions = {},
): Promise<Database> {
  const { url, connections, silence = SILENCE_TIMEOUT } = location;
  const migrations = readMigrations(migrationsFolder("postgresql"));
  const prepare = async () => {
    const config = { connectionString: url, connectionTimeoutMillis: silence };
    const migrated = await migratePostgresql(config, migrations, options);
    return { migrated, namesUnindexed: await inMigrationTurn(config, indexNamesOnPostgresql) };
  };
  const prepared = await prepare().catch((error: unknown) => {
    throw unusable(url, error);
  });
  const names = new StatementNames();
  const factory = new PrismaPg(
    {
      connectionString: url,
      max: connections,
      connectionTimeoutMillis: silence,
      statement_timeout: STATEMENT_TIMEOUT,
      idle_in_transaction_session_timeout: IDLE_TRANSACTION_TIMEOUT,
      application_name: "gatehouse",
      options: PLANNER,
      pipeline: true,
    },
    { statementNameGenerator: names.of },
  );
  const adapter = await factory.connect();
  repeatStalePlans(adapter, names);
  const pool = adapter.underlyingDriver();
  endSilence(pool, url, { database: silence, connection: STATEMENT_TIMEOUT });
  const client = new PrismaClient({
    adapter: { provider: factory.provider, adapterName: factory.adapterName, connect: async () => adapter },
    errorFormat: "minimal",
  });
  readDirectly(client, {
    provider: "postgres",
    sql: repeatingStalePlans(postgresqlSql(pool, names.of), names),
    wire: repeatingStalePlans(postgresqlSql(pool, names.of, WIRE_TYPES), names),
  });
  writeDirectly(client, new GroupCommit((alone) => beginSerializable(pool, names, alone)));
  return {
    // This cast is safe. The SQLite and PostgreSQL clients are generated from the same models, so their types differ
    // only in their names.
    client: client as unknown as SharedClient,
    ...prepared,
    schema: migrations.at(-1)?.name,
    snapshots: undefined,
    async tryWrite() {
      await client.$executeRaw`UPDATE "SigningKey" SET "createdAt" = "createdAt"
        WHERE "kid" = (SELECT max("kid") FROM "SigningKey")`;
    },
    close: () => client.$disconnect(),
  };
}

/** Returns the URL of a database without password and parameters, for error messages. */
export function shownUrl(url: string): string {
  const shown = new URL(url);
  shown.password = "";
  shown.search = "";
  return shown.toString();
}

/** Returns the error for a PostgreSQL database that cannot be used, with a message for the operator. */
export function unusable(url: string, error: unknown): DatabaseError {
  if (error instanceof DatabaseError) return error;
  return new DatabaseError(`Cannot use the database ${shownUrl(url)}: ${reasonOf(error)}`, { cause: error });
}
