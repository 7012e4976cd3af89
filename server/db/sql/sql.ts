import {
  type ArgType,
  type ColumnType,
  ColumnTypeEnum,
  type SqlQuery,
  type SqlQueryable,
} from "@prisma/driver-adapter-utils";
import { Prisma } from "../generated/sqlite/client.ts";

/**
 * Interface that executes SQL. Database clients, their transactions, and transactions that use only SQL implement this
 * interface.
 */
export interface SqlClient {
  /** Returns the rows of a query. {@link readRows} is a faster way to read rows outside a transaction. */
  $queryRaw<Rows>(query: Sql): Promise<Rows>;
  /** Executes a statement, and returns the number of changed rows. */
  $executeRaw(statement: Sql): Promise<number>;
  /**
   * Continues without waiting for a change; the COMMIT waits for the change instead. Undefined for clients for which
   * this saves no time.
   */
  leaveToCommit?(change: Promise<unknown>): void;
}

/**
 * Continues without waiting for a change; the COMMIT waits for the change instead. Use this function if the caller does
 * not need the result of the change. If the change fails, the whole transaction is rolled back.
 */
export async function leaveToCommit(db: SqlClient, change: Promise<unknown>): Promise<void> {
  if (db.leaveToCommit) db.leaveToCommit(change);
  else await change;
}

/** Access to a database that bypasses Prisma's client. */
interface DirectReading {
  readonly provider: SqlQueryable["provider"];
  readonly sql: SqlClient;
  /** SQL client that returns times as text in the API's format. */
  readonly wire: SqlClient;
}

/**
 * The direct database access of each Prisma client. The client of a transaction is a different object, and has no
 * entry.
 */
const direct = new WeakMap<object, DirectReading>();

/** Registers a Prisma client's direct database access, which {@link readRows} and {@link readWireRows} then use. */
export function readDirectly(client: object, reading: DirectReading): void {
  direct.set(client, reading);
}

/** Returns the kind of a client's database; undefined inside a transaction. */
export const providerOf = (db: object): SqlQueryable["provider"] | undefined => direct.get(db)?.provider;

/**
 * Returns the rows of a query, as the client's `$queryRaw` returns them. The client's `$queryRaw` takes 40 µs to find a
 * row by its id. On SQLite, this is seven times the time of the database itself. So outside a transaction, this
 * function bypasses `$queryRaw`. Inside a transaction, the function uses the transaction's `$queryRaw`.
 * @throws DriverAdapterError, PrismaClientKnownRequestError the database rejects the query
 */
export function readRows<Row>(db: SqlClient, query: Sql): Promise<Row[]> {
  return (direct.get(db)?.sql ?? db).$queryRaw<Row[]>(query);
}

/** Maximum number of values in one statement. Other requests to the database wait for at most one statement. */
const BATCH = 250;

/** Splits any number of values into lists, one for each statement. */
export function* batchesOf<T>(all: Iterable<T>): Generator<T[]> {
  const values = [...all];
  for (let start = 0; start < values.length; start += BATCH) yield values.slice(start, start + BATCH);
}

type WireValue<Value> = Value extends Date ? string : Value;

/** A row with its times in the format of the API. */
export type WireRow<Row> = { readonly [Name in keyof Row]: WireValue<Row[Name]> };

/** A row that a response presents: from {@link readRows} or from {@link readWireRows}. */
export type ShownRow<Row> = Row | WireRow<Row>;

/**
 * Returns the rows of a query for responses, with times as text in the format of the API. {@link readRows} would return
 * times as objects, and converting them to text takes as long as reading the rest of the row.
 * @throws DriverAdapterError, PrismaClientKnownRequestError the database rejects the query
 */
export async function readWireRows<Row>(db: SqlClient, query: Sql): Promise<Row[]> {
  const reading = direct.get(db);
  if (reading !== undefined) return reading.wire.$queryRaw<Row[]>(query);
  const rows = await db.$queryRaw<Record<string, unknown>[]>(query);
  for (const row of rows) {
    for (const name in row) {
      const value = row[name];
      if (value instanceof Date) row[name] = value.toISOString();
    }
  }
  return rows as Row[];
}

/** A connection through an adapter of Prisma, or a transaction on it. */
type Queryable = Pick<SqlQueryable, "provider" | "queryRaw" | "executeRaw">;

// The type of every argument is `unknown`, because the adapters convert an argument by its JavaScript type.
const ARGUMENT: ArgType = { scalarType: "unknown", arity: "scalar" };

/**
 * Conversions of column values, by column type, where an adapter returns a different JavaScript type than Prisma's
 * client.
 */
type Conversions = Partial<Record<ColumnType, (value: never) => unknown>>;

const CONVERSIONS: Conversions = {
  [ColumnTypeEnum.Int64]: (value: string | number) => BigInt(value),
  [ColumnTypeEnum.Boolean]: (value: boolean | number) => Boolean(value),
  [ColumnTypeEnum.DateTime]: (value: string) => new Date(value),
};

/** Conversions of column values, with times in the format of the API. SQLite stores `2026-01-02T03:04:05.678+00:00`. */
const WIRE_CONVERSIONS: Conversions = {
  ...CONVERSIONS,
  [ColumnTypeEnum.DateTime]: (value: string) => value.replace("+00:00", "Z"),
};

async function rowsOf<Row>(connection: Queryable, query: Sql, converting: Conversions): Promise<Row[]> {
  const { columnNames, columnTypes, rows } = await connection.queryRaw(queryFor(connection, query));
  const conversions = columnTypes.map((type) => converting[type]);
  let form: Readonly<Record<string, unknown>> = {};
  return rows.map((values) => {
    // A copy of the previous row allocates all columns of the new row at once. Adding the columns one by one to an
    // empty object would allocate several times the memory of the row.
    const row: Record<string, unknown> = { ...form };
    for (let index = 0; index < columnNames.length; index += 1) {
      const value = values[index];
      const convert = conversions[index];
      row[columnNames[index] as string] =
        value === null || convert === undefined ? value : convert(value as never);
    }
    form = row;
    return row as Row;
  });
}

const queryFor = ({ provider }: Queryable, query: Sql): SqlQuery => ({
  sql: provider === "sqlite" ? query.sql : query.text,
  args: query.values,
  argTypes: query.values.map(() => ARGUMENT),
});

/** Returns an SQL client that bypasses Prisma's client and uses the same adapter. */
export const directClient = (connection: Queryable, converting = CONVERSIONS): SqlClient => ({
  $queryRaw: async <Rows>(query: Sql) => (await rowsOf(connection, query, converting)) as Rows,
  $executeRaw: (statement) => connection.executeRaw(queryFor(connection, statement)),
});

/** Returns the direct access to a database through Prisma's adapter, which {@link readDirectly} requires. */
export const readingBy = (adapter: Queryable): DirectReading => ({
  provider: adapter.provider,
  sql: directClient(adapter),
  wire: directClient(adapter, WIRE_CONVERSIONS),
});

/** A fragment of SQL and its values. The values are never part of the text. */
export type Sql = Prisma.Sql;

interface SqlTag {
  (strings: TemplateStringsArray, ...values: readonly unknown[]): Sql;
  /** Joins fragments of SQL. At least one fragment is required. */
  join(parts: readonly Sql[], separator: string): Sql;
  /** Returns values separated by commas, for IN. At least one value is required. */
  list(values: readonly unknown[]): Sql;
  /** Returns the quoted name of a table or column. The name must come from the code, never from a caller. */
  column(name: string): Sql;
  readonly true: Sql;
  readonly false: Sql;
}

const tag = (strings: TemplateStringsArray, ...values: readonly unknown[]): Sql =>
  Prisma.sql(strings, ...(values as Prisma.Sql[]));

/** Builds SQL that both SQLite and PostgreSQL accept. */
export const sql: SqlTag = Object.assign(tag, {
  join: (parts: readonly Sql[], separator: string) => Prisma.join([...parts], separator),
  list: (values: readonly unknown[]) => Prisma.join([...values], ", "),
  column: (name: string) => Prisma.raw(`"${name}"`),
  true: Prisma.sql`1 = 1`,
  false: Prisma.sql`1 = 0`,
});

/** SQL for the present time according to PostgreSQL, in the format of the time columns. */
export const databaseTime: Sql = sql`timezone('utc', clock_timestamp())`;
