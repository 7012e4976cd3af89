import type {
  SqlDriverAdapter,
  SqlDriverAdapterFactory,
  SqlQuery,
  SqlQueryable,
  Transaction,
} from "@prisma/driver-adapter-utils";
import type { PrismaClient } from "../../../server/db/generated/sqlite/client.ts";

/** The properties of a statement's query plan that tests check. */
interface Plan {
  /**
   * Tables of which the statement reads every row or every index entry. The cost of such a statement grows with the
   * size of other namespaces.
   */
  readonly scans: readonly string[];
  /** True if the database sorts the rows after it has read them. Even the first page then requires all rows. */
  readonly sorts: boolean;
  readonly text: string;
}

/** A database that records the SQL queries of its client, and can return the query plan of each query. */
export interface RecordingDatabase {
  readonly client: PrismaClient;
  /** Returns the queries since the last call. */
  takeQueries(): SqlQuery[];
  planOf(query: SqlQuery): Promise<Plan>;
  close(): Promise<void>;
}

/** Wraps a Prisma driver adapter, so that it passes every SQL query to `seen` before the query runs. */
export function recording(factory: SqlDriverAdapterFactory, seen: (query: SqlQuery) => void) {
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
    /** Runs a query without recording it. */
    run: (query: SqlQuery) => {
      if (connected === undefined) throw new Error("the database is not connected yet");
      return connected.queryRaw(query);
    },
  };
}
