import { Prisma } from "../generated/sqlite/client.ts";

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
