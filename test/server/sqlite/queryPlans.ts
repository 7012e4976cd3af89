import type {
  SqlDriverAdapter,
  SqlDriverAdapterFactory,
  SqlQuery,
  SqlQueryable,
  Transaction,
} from "@prisma/driver-adapter-utils";
import { PrismaClient } from "../../../server/dist/db/generated/sqlite/client.js";
import { migrateSqlite } from "../../../server/dist/db/migrateSqlite.js";
import { migrationsFolder, readMigrations } from "../../../server/dist/db/migrations.js";
import { openSqlite } from "../../../server/dist/db/openSqlite.js";
import { sqliteAdapter } from "../../../server/dist/db/sqliteAdapter.js";

/** What a database says about how it runs a statement, as far as tests look at it. */
export interface Plan {
  /** Tables of which it reads every row, or every entry of an index: their cost grows with other namespaces. */
  readonly scans: readonly string[];
  /** The rows are sorted after they were read, so all of them are read for the first page. */
  readonly sorts: boolean;
  readonly text: string;
}

/** A database that keeps the statements it ran, and tells how it runs them. */
export interface RecordingDatabase {
  readonly client: PrismaClient;
  /** Takes the queries since the last call. */
  takeQueries(): SqlQuery[];
  planOf(query: SqlQuery): Promise<Plan>;
  close(): Promise<void>;
}

/** The adapter that hands every query to `seen` first. */
function recording(factory: SqlDriverAdapterFactory, seen: (query: SqlQuery) => void) {
  const watch = <T extends SqlQueryable>(queryable: T): T => {
    const run = queryable.queryRaw.bind(queryable);
    queryable.queryRaw = (query) => {
      seen(query);
      return run(query);
    };
    return queryable;
  };
  let connected: SqlDriverAdapter | undefined;
  const connect = async () => {
    const adapter = await factory.connect();
    connected = { ...adapter, queryRaw: adapter.queryRaw.bind(adapter) } as SqlDriverAdapter;
    const begin = adapter.startTransaction.bind(adapter);
    adapter.startTransaction = async (level): Promise<Transaction> => watch(await begin(level));
    return watch(adapter);
  };
  return {
    factory: { ...factory, connect } satisfies SqlDriverAdapterFactory,
    /** Runs a query that is not recorded. */
    run: (query: SqlQuery) => {
      if (connected === undefined) throw new Error("nothing was asked of the database yet");
      return connected.queryRaw(query);
    },
  };
}

/** A new SQLite database whose plans can be read; one for PostgreSQL gives the same from its own EXPLAIN. */
export async function openRecordingSqlite(file: string): Promise<RecordingDatabase> {
  const sqlite = openSqlite(file);
  migrateSqlite(sqlite, readMigrations(migrationsFolder("sqlite")));
  let queries: SqlQuery[] = [];
  const { factory, run } = recording(sqliteAdapter(sqlite), (query) => queries.push(query));
  const client = new PrismaClient({ adapter: factory });
  const tables = new Set(
    sqlite.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all() as string[],
  );
  /** The table that a step goes through from end to end, be it along an index. */
  const scanned = (step: string): string[] => {
    const table = /^SCAN (?:main\.)?(\w+)/.exec(step)?.[1];
    return table !== undefined && tables.has(table) ? [table] : [];
  };
  return {
    client,
    takeQueries: () => {
      const taken = queries;
      queries = [];
      return taken;
    },
    planOf: async (query) => {
      const { rows } = await run({ ...query, sql: `EXPLAIN QUERY PLAN ${query.sql}` });
      const steps = rows.map((row) => String(row[3]));
      return {
        scans: steps.flatMap(scanned),
        sorts: steps.some((step) => /^USE TEMP B-TREE FOR .*ORDER BY$/.test(step)),
        text: `${query.sql}\n${steps.join("\n")}`,
      };
    },
    close: async () => {
      await client.$disconnect();
      sqlite.close();
    },
  };
}
