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
}

/** What takes statements, without Prisma's client before it: a connection, or a transaction on one. */
type Queryable = Pick<SqlQueryable, "provider" | "queryRaw" | "executeRaw">;

/** The connection that each client uses. A transaction's client is another object, and never has an entry. */
const connections = new WeakMap<object, Queryable>();

/** Lets {@link readRows} use a client's connection directly. */
export function readDirectly(client: object, connection: Queryable): void {
  connections.set(client, connection);
}

// The JavaScript types of the values suffice.
const ARGUMENT: ArgType = { scalarType: "unknown", arity: "scalar" };

/** Conversions of the columns whose values the adapter returns with another type. */
const CONVERSIONS: Partial<Record<ColumnType, (value: never) => unknown>> = {
  [ColumnTypeEnum.Int64]: (value: string | number) => BigInt(value),
  [ColumnTypeEnum.Boolean]: (value: boolean | number) => Boolean(value),
  [ColumnTypeEnum.DateTime]: (value: string) => new Date(value),
};

/**
 * The rows that a query finds, as the client's `$queryRaw` returns them. `$queryRaw` takes 40 µs to find a row by its
 * id, on SQLite seven times what the database takes, so outside of a transaction this function bypasses it. Inside of
 * one it uses the transaction's `$queryRaw`.
 * @throws DriverAdapterError, PrismaClientKnownRequestError the database refuses the query
 */
export async function readRows<Row>(db: SqlClient, query: Sql): Promise<Row[]> {
  const connection = connections.get(db);
  return connection === undefined ? db.$queryRaw<Row[]>(query) : rowsOf<Row>(connection, query);
}

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

/** What takes SQL for a connection or a transaction on it, without Prisma's client. */
export const directClient = (connection: Queryable): SqlClient => ({
  $queryRaw: async <Rows>(query: Sql) => (await rowsOf(connection, query)) as Rows,
  $executeRaw: (statement) => connection.executeRaw(queryFor(connection, statement)),
});
