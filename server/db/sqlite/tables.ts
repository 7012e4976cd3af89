import type Sqlite from "better-sqlite3";

/** A column of a SQLite database that Prisma's migrations created. */
interface SqliteColumn {
  readonly name: string;
  /** The declared type: TEXT, INTEGER, BIGINT, REAL, BOOLEAN or DATETIME. */
  readonly type: string;
}

/** A table of a SQLite database. */
export interface SqliteTable {
  readonly name: string;
  readonly columns: readonly SqliteColumn[];
  /**
   * The highest id that SQLite ever assigned in the table, and the column of the ids. Undefined if SQLite does not
   * assign the ids.
   */
  readonly sequence: { readonly column: string; readonly last: number } | undefined;
}

interface TableInfo extends SqliteColumn {
  /** Position in the primary key, counted from 1. The value 0 means that the column is not part of the primary key. */
  readonly pk: number;
}

/**
 * Returns all tables of the service. A table comes before the tables that refer to it. The list is read from the
 * database, so it includes the tables of new models.
 */
export function sqliteTables(sqlite: Sqlite.Database): SqliteTable[] {
  const names = sqlite
    .prepare(
      `SELECT name FROM sqlite_master
       WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name <> '_migration' ORDER BY name`,
    )
    .pluck()
    .all() as string[];
  return inOrder(names, (name) => parentsOf(sqlite, name)).map((name) => {
    const columns = sqlite.pragma(`table_info("${name}")`) as TableInfo[];
    const last = lastId(sqlite, name);
    const column = columns.find(({ pk }) => pk === 1)?.name;
    return {
      name,
      columns: columns.map((info) => ({ name: info.name, type: info.type })),
      sequence: last === undefined || column === undefined ? undefined : { column, last },
    };
  });
}

function parentsOf(sqlite: Sqlite.Database, name: string): string[] {
  const keys = sqlite.pragma(`foreign_key_list("${name}")`) as { table: string }[];
  return keys.map(({ table }) => table);
}

/**
 * Returns the last id that SQLite assigned in a table. Returns undefined if SQLite does not assign the ids, or if the
 * table never had a row.
 */
function lastId(sqlite: Sqlite.Database, name: string): number | undefined {
  return sqlite.prepare("SELECT seq FROM sqlite_sequence WHERE name = ?").pluck().get(name) as
    | number
    | undefined;
}

function inOrder(names: readonly string[], parents: (name: string) => readonly string[]): string[] {
  const placed = new Set<string>();
  const place = (name: string, path: readonly string[]) => {
    if (path.includes(name)) throw new Error(`tables refer to each other: ${[...path, name].join(", ")}`);
    if (placed.has(name)) return;
    for (const parent of parents(name)) place(parent, [...path, name]);
    placed.add(name);
  };
  for (const name of names) place(name, []);
  return [...placed];
}

/**
 * Returns the rows of a table in batches, with values in the JSON format that PostgreSQL reads: Boolean values, times
 * in ISO 8601, and 64-bit numbers as strings.
 */
export function* rowsOf(
  sqlite: Sqlite.Database,
  table: SqliteTable,
  batchSize: number,
): Generator<Record<string, unknown>[]> {
  const rows = sqlite.prepare(`SELECT * FROM "${table.name}"`).safeIntegers().iterate() as IterableIterator<
    Record<string, unknown>
  >;
  let batch: Record<string, unknown>[] = [];
  for (const row of rows) {
    const values = table.columns.map(({ name, type }) => [name, portable(row[name], type)]);
    batch.push(Object.fromEntries(values));
    if (batch.length === batchSize) {
      yield batch;
      batch = [];
    }
  }
  if (batch.length > 0) yield batch;
}

function portable(value: unknown, type: string): unknown {
  if (value === null) return null;
  if (type === "BOOLEAN") return value !== 0n;
  if (type === "DATETIME") return new Date(String(value)).toISOString();
  return typeof value === "bigint" ? value.toString() : value;
}
