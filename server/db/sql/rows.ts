import type { Prisma } from "../generated/sqlite/client.ts";
import { readRows, type Sql, type SqlClient, sql } from "./sql.ts";

/** Name of a model. The table of the model has the same name. */
type Model = Prisma.ModelName;

/** A row of a model's table. */
export type RowOf<M extends Model> = Prisma.TypeMap["model"][M]["payload"]["scalars"];

/** Columns that identify rows, with their values. At least one column is required, and no value may be null. */
type Key<M extends Model> = Partial<RowOf<M>>;

const equalities = (columns: object): Sql[] =>
  Object.entries(columns).map(([name, value]) => sql`${sql.column(name)} = ${value}`);

/** Returns the SQL condition that selects the rows with a key. */
export const hasKey = <M extends Model>(key: Key<M>): Sql => sql.join(equalities(key), " AND ");

/** Returns the row with a unique key. Returns null if the row does not exist. */
export async function findRow<M extends Model>(
  db: SqlClient,
  model: M,
  key: Key<M>,
): Promise<RowOf<M> | null> {
  const [row] = await readRows<RowOf<M>>(db, sql`SELECT * FROM ${sql.column(model)} WHERE ${hasKey(key)}`);
  return row ?? null;
}

/**
 * Returns the number of rows that meet a condition.
 * @param most counting stops at this number
 */
export async function countRows(
  db: SqlClient,
  model: Model,
  where: Sql,
  most = Number.MAX_SAFE_INTEGER,
): Promise<number> {
  const rows = sql`SELECT 1 FROM ${sql.column(model)} WHERE ${where} LIMIT ${most}`;
  const [counted] = await readRows<{ count: number | bigint }>(
    db,
    sql`SELECT COUNT(*) AS count FROM (${rows}) AS counted`,
  );
  return Number(counted?.count);
}

/** A row to insert. A value may be SQL, such as a query that returns one value. */
type NewRow<M extends Model> = { readonly [Column in keyof RowOf<M>]?: RowOf<M>[Column] | Sql };

/** Returns the statement that {@link insertRows} executes. Requires at least one row. */
export function insertion<M extends Model>(model: M, rows: readonly NewRow<M>[]): Sql {
  const columns = Object.keys(rows[0] ?? {}).map(sql.column);
  const values = rows.map((row) => sql`(${sql.list(Object.values(row))})`);
  return sql`INSERT INTO ${sql.column(model)} (${sql.join(columns, ", ")})
    VALUES ${sql.join(values, ", ")} ON CONFLICT DO NOTHING`;
}

/**
 * Inserts rows. All rows must have the same columns. Omitted columns get their default values.
 * @returns false if some rows violate a unique constraint; all other rows are inserted
 */
export async function insertRows<M extends Model>(
  db: SqlClient,
  model: M,
  rows: readonly NewRow<M>[],
): Promise<boolean> {
  return rows.length === 0 || (await db.$executeRaw(insertion(model, rows))) === rows.length;
}

/**
 * Updates the row with a key, or inserts it if it does not exist.
 * @param key columns of a unique key, with their values
 * @param inserted columns that are set only if the row is inserted
 */
export async function putRow<M extends Model>(
  db: SqlClient,
  model: M,
  key: Key<M>,
  changes: Partial<RowOf<M>>,
  inserted: Partial<RowOf<M>> = {},
): Promise<void> {
  const row = { ...key, ...changes, ...inserted };
  const columns = sql.join(Object.keys(row).map(sql.column), ", ");
  await db.$executeRaw(
    sql`INSERT INTO ${sql.column(model)} (${columns}) VALUES (${sql.list(Object.values(row))})
      ON CONFLICT (${sql.join(Object.keys(key).map(sql.column), ", ")})
      DO UPDATE SET ${sql.join(equalities(changes), ", ")}`,
  );
}

/**
 * Updates the row with a key.
 * @returns false if the row does not exist
 */
export async function updateRow<M extends Model>(
  db: SqlClient,
  model: M,
  key: Key<M>,
  changes: Partial<RowOf<M>>,
): Promise<boolean> {
  const set = sql.join(equalities(changes), ", ");
  return (await db.$executeRaw(sql`UPDATE ${sql.column(model)} SET ${set} WHERE ${hasKey(key)}`)) > 0;
}

/**
 * Deletes the rows with a key, and all rows that depend on them.
 * @returns false if no row has the key
 */
export async function deleteRows<M extends Model>(db: SqlClient, model: M, key: Key<M>): Promise<boolean> {
  return (await db.$executeRaw(sql`DELETE FROM ${sql.column(model)} WHERE ${hasKey(key)}`)) > 0;
}
