import { PrismaPg } from "@prisma/adapter-pg";
import type { Database } from "./Database.ts";
import { DatabaseError } from "./DatabaseError.ts";
import { PrismaClient } from "./generated/postgresql/client.ts";
import type { PrismaClient as SharedClient } from "./generated/sqlite/client.ts";
import { migratePostgresql } from "./migratePostgresql.ts";
import { migrationsFolder, readMigrations } from "./migrations.ts";
import { readDirectly } from "./readRows.ts";
import { endSilence } from "./silence.ts";
import { gateTransactions } from "./transactionGate.ts";

/** Statements that a connection keeps ready; texts beyond them (lists of ids of any length) are parsed each time. */
const MAXIMUM = 300;

/**
 * Names under which PostgreSQL keeps statements ready, so that it parses and plans each once for a connection.
 * @returns a function from a statement to its name; undefined for one that is not worth keeping
 */
function statementNames(): (query: { readonly sql: string }) => string {
  const names = new Map<string, string>();
  return ({ sql }) => {
    const known = names.get(sql);
    if (known !== undefined) return known;
    // Without a name a statement is not kept.
    if (names.size >= MAXIMUM) return "";
    const name = `gatehouse_${names.size}`;
    names.set(sql, name);
    return name;
  };
}

/**
 * How long PostgreSQL may give no sign of life, in milliseconds: after that a new connection, and whatever waits on
 * an open one, a read or a write, has failed.
 */
export const SILENCE_TIMEOUT = 10_000;
/** After how many milliseconds the database gives up a statement, so that none can hold a connection for ever. */
const STATEMENT_TIMEOUT = 60_000;
/** The same for a transaction whose process does not go on with it. */
const IDLE_TRANSACTION_TIMEOUT = 60_000;

/**
 * Without sequential scans where there is an index. A serializable transaction that scans a table conflicts with
 * whoever writes to it, in any namespace, and small tables are scanned; so are large ones by a statement that was
 * planned while they were small.
 */
const PLANNER = "-c enable_seqscan=off";

/** See {@link openDatabase}. Transactions are durable when they are acknowledged, as PostgreSQL is set up by default. */
export async function openPostgresqlDatabase(location: {
  readonly url: string;
  readonly connections: number;
  readonly silence?: number;
}): Promise<Database> {
  const { url, connections, silence = SILENCE_TIMEOUT } = location;
  const migrated = await migratePostgresql(
    { connectionString: url, connectionTimeoutMillis: silence },
    readMigrations(migrationsFolder("postgresql")),
  ).catch((error: unknown) => {
    throw unusable(url, error);
  });
  const factory = new PrismaPg(
    {
      connectionString: url,
      max: connections,
      connectionTimeoutMillis: silence,
      statement_timeout: STATEMENT_TIMEOUT,
      idle_in_transaction_session_timeout: IDLE_TRANSACTION_TIMEOUT,
      application_name: "gatehouse",
      options: PLANNER,
    },
    { statementNameGenerator: statementNames() },
  );
  const adapter = await factory.connect();
  endSilence(adapter.underlyingDriver(), url, { database: silence, connection: STATEMENT_TIMEOUT });
  const client = new PrismaClient({
    adapter: { provider: factory.provider, adapterName: factory.adapterName, connect: async () => adapter },
    errorFormat: "minimal",
  });
  readDirectly(client, adapter);
  gateTransactions(client);
  return {
    // Both clients come from the same models, so they differ in their names only.
    client: client as unknown as SharedClient,
    migrated,
    snapshots: undefined,
    async tryWrite() {
      await client.$executeRaw`UPDATE "SigningKey" SET "createdAt" = "createdAt"
        WHERE "kid" = (SELECT max("kid") FROM "SigningKey")`;
    },
    close: () => client.$disconnect(),
  };
}

/** The database without the user's password, as messages may name it. */
export function shownUrl(url: string): string {
  const shown = new URL(url);
  shown.password = "";
  shown.search = "";
  return shown.toString();
}

/** What to tell the person who runs the service when a PostgreSQL database cannot be used. */
export function unusable(url: string, error: unknown): DatabaseError {
  if (error instanceof DatabaseError) return error;
  const text =
    error instanceof Error ? error.message || ("code" in error ? String(error.code) : "") : String(error);
  return new DatabaseError(`Cannot use the database ${shownUrl(url)}: ${text}`, { cause: error });
}
