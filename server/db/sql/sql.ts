import {
  type ArgType,
  type ColumnType,
  ColumnTypeEnum,
  type SqlQuery,
  type SqlQueryable,
} from "@prisma/driver-adapter-utils";
import { Prisma } from "../generated/sqlite/client.ts";

/** Executes SQL. Database clients, their transactions, and transactions that use only SQL implement this interface. */
export interface SqlClient {
  /** Returns the rows of a query. {@link readRows} is a faster way to read rows outside a transaction. */
  $queryRaw<Rows>(query: Sql): Promise<Rows>;
  /** Executes a statement, and returns the number of changed rows. */
  $executeRaw(statement: Sql): Promise<number>;
  /**
   * Makes the COMMIT wait for a change, so that the caller can continue. Undefined for clients that would save no time.
   */
  leaveToCommit?(change: Promise<unknown>): void;
}

/**
 * Makes the COMMIT wait for a change, so that the caller can continue. Use this function if the caller does not need
 * the result of the change. If the change fails, the whole transaction is rolled back.
 */
export async function leaveToCommit(db: SqlClient, change: Promise<unknown>): Promise<void> {
  if (db.leaveToCommit) db.leaveToCommit(change);
  else await change;
}

/** Access to a database that bypasses Prisma's client. */
interface DirectReading {
  readonly provider: SqlQueryable["provider"];
  readonly sql: SqlClient;
  /** SQL client that returns times as strings in the API's format. */
  readonly wire: SqlClient;
}

/**
 * The direct database access of each Prisma client. This map contains no transactions, because the client of a
 * transaction is a different object.
 */
const direct = new WeakMap<object, DirectReading>();

/** Registers the direct database access of a Prisma client. {@link readRows} and {@link readWireRows} use it. */
export function readDirectly(client: object, reading: DirectReading): void {
  direct.set(client, reading);
}

/** Returns the kind of a client's database. Returns undefined inside a transaction. */
export const providerOf = (db: object): SqlQueryable["provider"] | undefined => direct.get(db)?.provider;

/**
 * Returns the rows of a query in the same format as the client's `$queryRaw`. The client's `$queryRaw` takes 40 µs to
 * find a row by its id. On SQLite, this is seven times as long as the database itself takes. Therefore, this function
 * bypasses `$queryRaw` outside a transaction. Inside a transaction, this function uses the `$queryRaw` of the
 * transaction.
 * @throws DriverAdapterError, PrismaClientKnownRequestError the database rejects the query
 */
export function readRows<Row>(db: SqlClient, query: Sql): Promise<Row[]> {
  return (direct.get(db)?.sql ?? db).$queryRaw<Row[]>(query);
}

/**
 * Maximum number of values in one statement. The limit keeps statements short, because other database requests wait
 * until the current statement ends.
 */
const BATCH = 250;

/** Splits any number of values into lists, one for each statement. */
export function* batchesOf<T>(all: Iterable<T>): Generator<T[]> {
  const values = [...all];
  for (let start = 0; start < values.length; start += BATCH) yield values.slice(start, start + BATCH);
}

type WireValue<Value> = Value extends Date ? string : Value;

/** A row that contains times in the API's format. */
export type WireRow<Row> = { readonly [Name in keyof Row]: WireValue<Row[Name]> };

/** A row for a response. It comes from {@link readRows} or from {@link readWireRows}. */
export type ShownRow<Row> = Row | WireRow<Row>;

/**
 * Returns the rows of a query. The rows are for responses: they contain times as strings in the API's format. {@link
 * readRows} would return times as objects. The conversion of these objects to strings would take as long as reading the
 * rest of the row.
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

/** A connection of a Prisma adapter, or a transaction on such a connection. */
type Queryable = Pick<SqlQueryable, "provider" | "queryRaw" | "executeRaw">;

// The type of every argument is `unknown`, because the adapters convert an argument by its JavaScript type.
const ARGUMENT: ArgType = { scalarType: "unknown", arity: "scalar" };

/**
 * Conversions of column values, by column type. Contains a conversion for each column type whose values have a
 * different JavaScript type in an adapter than in Prisma's client.
 */
type Conversions = Partial<Record<ColumnType, (value: never) => unknown>>;

const CONVERSIONS: Conversions = {
  [ColumnTypeEnum.Int64]: (value: string | number) => BigInt(value),
  [ColumnTypeEnum.Boolean]: (value: boolean | number) => Boolean(value),
  [ColumnTypeEnum.DateTime]: (value: string) => new Date(value),
};

/**
 * Conversions of column values that return times in the API's format. SQLite stores `2026-01-02T03:04:05.678+00:00`.
 */
const WIRE_CONVERSIONS: Conversions = {
  ...CONVERSIONS,
  [ColumnTypeEnum.DateTime]: (value: string) => value.replace("+00:00", "Z"),
};

async function rowsOf<Row>(connection: Queryable, query: Sql, converting: Conversions): Promise<Row[]> {
  const { columnNames, columnTypes, rows } = await connection.queryRaw(queryFor(connection, query));
  const conversions = columnTypes.map((type) => converting[type]);
  let form: Readonly<Record<string, unknown>> = {};
  return rows.map((values) => {
    // A copy of the previous row allocates all columns of the new row together. Adding the columns one by one to an
    // empty object would allocate several times as much memory.
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

/** Returns direct access to a database through Prisma's adapter, for {@link readDirectly}. */
export const readingBy = (adapter: Queryable): DirectReading => ({
  provider: adapter.provider,
  sql: directClient(adapter),
  wire: directClient(adapter, WIRE_CONVERSIONS),
});

/** A fragment of SQL and its values. The SQL text never contains the values. */
export type Sql = Prisma.Sql;

interface SqlTag {
  (strings: TemplateStringsArray, ...values: readonly unknown[]): Sql;
  /** Joins fragments of SQL. At least one fragment is required. */
  join(parts: readonly Sql[], separator: string): Sql;
  /** Returns values separated by commas, for an IN condition. At least one value is required. */
  list(values: readonly unknown[]): Sql;
  /**
   * Returns the quoted name of a table or column. The name must be a constant in the code, never input from a caller.
   */
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

/** SQL for the current time of the PostgreSQL server, in the format of the time columns. */
export const databaseTime: Sql = sql`timezone('utc', clock_timestamp())`;
