import {
  type ArgType,
  type ColumnType,
  ColumnTypeEnum,
  type SqlQuery,
  type SqlQueryable,
} from "@prisma/driver-adapter-utils";
import type { Sql } from "./sql.ts";

/** Takes SQL: a client of the database, a transaction of it, or a transaction of SQL alone. */
export interface SqlClient {
  /** The rows of a query; {@link readRows} reads them faster where there is a faster way. */
  $queryRaw<Rows>(query: Sql): Promise<Rows>;
  /** Runs a statement, and tells how many rows it has changed. */
  $executeRaw(statement: Sql): Promise<number>;
  /** Leaves it to the COMMIT to wait for a change; left out where nothing is gained by that. */
  leaveToCommit?(change: Promise<unknown>): void;
}

/** Leaves a change whose outcome decides nothing to the COMMIT: where the change fails, nothing is committed. */
export async function leaveToCommit(db: SqlClient, change: Promise<unknown>): Promise<void> {
  if (db.leaveToCommit) db.leaveToCommit(change);
  else await change;
}

type Provider = SqlQueryable["provider"];

/** What takes SQL for the database of each client. A transaction's client is another object, and never has an entry. */
const direct = new WeakMap<object, { readonly sql: SqlClient; readonly provider: Provider }>();

/** Lets {@link readRows} pass by a client. */
export function readDirectly(client: object, sql: SqlClient, provider: Provider): void {
  direct.set(client, { sql, provider });
}

/** The kind of a client's database; undefined inside of a transaction. */
export const providerOf = (db: object): Provider | undefined => direct.get(db)?.provider;

/**
 * The rows that a query finds, as the client's `$queryRaw` returns them. `$queryRaw` takes 40 µs to find a row by its
 * id, on SQLite seven times what the database takes, so outside of a transaction this function bypasses it. Inside of
 * one it uses the transaction's `$queryRaw`.
 * @throws DriverAdapterError, PrismaClientKnownRequestError the database refuses the query
 */
export function readRows<Row>(db: SqlClient, query: Sql): Promise<Row[]> {
  return (direct.get(db)?.sql ?? db).$queryRaw<Row[]>(query);
}

/** A connection by an adapter of Prisma, or a transaction on it. */
type Queryable = Pick<SqlQueryable, "provider" | "queryRaw" | "executeRaw">;

// The JavaScript types of the values suffice.
const ARGUMENT: ArgType = { scalarType: "unknown", arity: "scalar" };

/** Conversions of the columns whose values the adapter returns with another type. */
const CONVERSIONS: Partial<Record<ColumnType, (value: never) => unknown>> = {
  [ColumnTypeEnum.Int64]: (value: string | number) => BigInt(value),
  [ColumnTypeEnum.Boolean]: (value: boolean | number) => Boolean(value),
  [ColumnTypeEnum.DateTime]: (value: string) => new Date(value),
};

async function rowsOf<Row>(connection: Queryable, query: Sql): Promise<Row[]> {
  const { columnNames, columnTypes, rows } = await connection.queryRaw(queryFor(connection, query));
  const conversions = columnTypes.map((type) => CONVERSIONS[type]);
  return rows.map((values) => {
    const row: Record<string, unknown> = {};
    for (let index = 0; index < columnNames.length; index += 1) {
      const value = values[index];
      const convert = conversions[index];
      row[columnNames[index] as string] =
        value === null || convert === undefined ? value : convert(value as never);
    }
    return row as Row;
  });
}

const queryFor = ({ provider }: Queryable, query: Sql): SqlQuery => ({
  sql: provider === "sqlite" ? query.sql : query.text,
  args: query.values,
  argTypes: query.values.map(() => ARGUMENT),
});

/** SQL without Prisma's client, by the adapter that it would use. */
export const directClient = (connection: Queryable): SqlClient => ({
  $queryRaw: async <Rows>(query: Sql) => (await rowsOf(connection, query)) as Rows,
  $executeRaw: (statement) => connection.executeRaw(queryFor(connection, statement)),
});
