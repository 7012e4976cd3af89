import {
  type ArgType,
  type ColumnType,
  ColumnTypeEnum,
  type SqlQuery,
  type SqlQueryable,
} from "@prisma/driver-adapter-utils";
import { Prisma } from "../generated/sqlite/client.ts";

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

/** How a client's database is read without the client. */
interface DirectReading {
  readonly provider: SqlQueryable["provider"];
  readonly sql: SqlClient;
  /** Gives times as the wire has them. */
  readonly wire: SqlClient;
}

/** How the database of each client is read. A transaction's client is another object, and never has an entry. */
const direct = new WeakMap<object, DirectReading>();

/** Lets {@link readRows} and {@link readWireRows} pass by a client. */
export function readDirectly(client: object, reading: DirectReading): void {
  direct.set(client, reading);
}

/** The kind of a client's database; undefined inside of a transaction. */
export const providerOf = (db: object): SqlQueryable["provider"] | undefined => direct.get(db)?.provider;

/**
 * The rows that a query finds, as the client's `$queryRaw` returns them. `$queryRaw` takes 40 µs to find a row by its
 * id, on SQLite seven times what the database takes, so outside of a transaction this function bypasses it. Inside of
 * one it uses the transaction's `$queryRaw`.
 * @throws DriverAdapterError, PrismaClientKnownRequestError the database refuses the query
 */
export function readRows<Row>(db: SqlClient, query: Sql): Promise<Row[]> {
  return (direct.get(db)?.sql ?? db).$queryRaw<Row[]>(query);
}

/** Values per statement: other users of the database wait for no longer than one statement takes. */
const BATCH = 250;

/** Any number of values, in as many lists as it takes statements to send them. */
export function* batchesOf<T>(all: Iterable<T>): Generator<T[]> {
  const values = [...all];
  for (let start = 0; start < values.length; start += BATCH) yield values.slice(start, start + BATCH);
}

/** A row with its times as the wire has them. */
export type WireRow<Row> = {
  readonly [Name in keyof Row]: Row[Name] extends Date ? string : Row[Name];
};

/**
 * Like {@link readRows}, for long lists: to make an object of each time, and its text from that, takes as long as to read
 * the rest of the row.
 * @throws DriverAdapterError, PrismaClientKnownRequestError the database refuses the query
 */
export async function readWireRows<Row>(db: SqlClient, query: Sql): Promise<Row[]> {
  const reading = direct.get(db);
  if (reading !== undefined) return reading.wire.$queryRaw<Row[]>(query);
  const rows = await db.$queryRaw<object[]>(query);
  const converted = (value: unknown) => (value instanceof Date ? value.toISOString() : value);
  return rows.map(
    (row) => Object.fromEntries(Object.entries(row).map(([name, value]) => [name, converted(value)])) as Row,
  );
}

/** A connection by an adapter of Prisma, or a transaction on it. */
type Queryable = Pick<SqlQueryable, "provider" | "queryRaw" | "executeRaw">;

// The JavaScript types of the values suffice.
const ARGUMENT: ArgType = { scalarType: "unknown", arity: "scalar" };

/** Conversions of the columns whose values an adapter returns with another type. */
type Conversions = Partial<Record<ColumnType, (value: never) => unknown>>;

const CONVERSIONS: Conversions = {
  [ColumnTypeEnum.Int64]: (value: string | number) => BigInt(value),
  [ColumnTypeEnum.Boolean]: (value: boolean | number) => Boolean(value),
  [ColumnTypeEnum.DateTime]: (value: string) => new Date(value),
};

/** For times as the wire has them; SQLite has `2026-01-02T03:04:05.678+00:00`. */
const WIRE_CONVERSIONS: Conversions = {
  ...CONVERSIONS,
  [ColumnTypeEnum.DateTime]: (value: string) => value.replace("+00:00", "Z"),
};

async function rowsOf<Row>(connection: Queryable, query: Sql, converting: Conversions): Promise<Row[]> {
  const { columnNames, columnTypes, rows } = await connection.queryRaw(queryFor(connection, query));
  const conversions = columnTypes.map((type) => converting[type]);
  let form: Readonly<Record<string, unknown>> = {};
  return rows.map((values) => {
    // Room for all columns at once: an object that grows by one after the other leaves several times its size as garbage.
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

/** SQL without Prisma's client, by the adapter that it would use. */
export const directClient = (connection: Queryable, converting = CONVERSIONS): SqlClient => ({
  $queryRaw: async <Rows>(query: Sql) => (await rowsOf(connection, query, converting)) as Rows,
  $executeRaw: (statement) => connection.executeRaw(queryFor(connection, statement)),
});

/** Reads by a client's adapter, for {@link readDirectly}. */
export const readingBy = (adapter: Queryable): DirectReading => ({
  provider: adapter.provider,
  sql: directClient(adapter),
  wire: directClient(adapter, WIRE_CONVERSIONS),
});

/** A piece of SQL with its values, which are never a part of its text. */
export type Sql = Prisma.Sql;

interface SqlTag {
  (strings: TemplateStringsArray, ...values: readonly unknown[]): Sql;
  /** Joins pieces, of which there must be at least one. */
  join(parts: readonly Sql[], separator: string): Sql;
  /** Values separated by commas, for IN; there must be at least one. */
  list(values: readonly unknown[]): Sql;
  /** The quoted name of a table or column; must come from the code, never from a caller. */
  column(name: string): Sql;
  readonly true: Sql;
  readonly false: Sql;
}

const tag = (strings: TemplateStringsArray, ...values: readonly unknown[]): Sql =>
  Prisma.sql(strings, ...(values as Prisma.Sql[]));

/** Makes SQL that SQLite and PostgreSQL both understand. */
export const sql: SqlTag = Object.assign(tag, {
  join: (parts: readonly Sql[], separator: string) => Prisma.join([...parts], separator),
  list: (values: readonly unknown[]) => Prisma.join([...values], ", "),
  column: (name: string) => Prisma.raw(`"${name}"`),
  true: Prisma.sql`1 = 1`,
  false: Prisma.sql`1 = 0`,
});
