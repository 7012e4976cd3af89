import type {
  SqlDriverAdapter,
  SqlDriverAdapterFactory,
  SqlQuery,
  SqlQueryable,
  Transaction,
} from "@prisma/driver-adapter-utils";
import type { PrismaClient } from "../../../server/db/generated/sqlite/client.ts";

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
    /** Runs a query that is not recorded. */
    run: (query: SqlQuery) => {
      if (connected === undefined) throw new Error("nothing was asked of the database yet");
      return connected.queryRaw(query);
    },
  };
}
