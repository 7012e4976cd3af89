import { expect, test } from "vitest";
import { postgresqlAddress } from "../../support/postgresql/database.ts";
import { testDatabase } from "./database.ts";

/**
 * These queries return a row for each foreign key: the table, the columns of the key, and the columns of each index of
 * the table, in order.
 */
const ON_POSTGRESQL = `SELECT conrelid::regclass::text AS "table", conkey::text AS columns,
  ARRAY(SELECT '{' || replace(indkey::text, ' ', ',') || '}' FROM pg_index WHERE indrelid = conrelid)::text[] AS indexes
  FROM pg_constraint WHERE contype = 'f'`;
const ON_SQLITE = `SELECT master.name AS "table",
  (SELECT group_concat("from") FROM (SELECT "from" FROM pragma_foreign_key_list(master.name)
    WHERE id = reference.id ORDER BY seq)) AS columns,
  (SELECT json_group_array((SELECT group_concat(name) FROM (SELECT name FROM pragma_index_info(list.name) ORDER BY seqno)))
    FROM pragma_index_list(master.name) AS list) AS indexes
  FROM sqlite_master AS master, pragma_foreign_key_list(master.name) AS reference
  WHERE master.type = 'table' AND reference.seq = 0`;

interface Reference {
  readonly table: string;
  readonly columns: string;
  readonly indexes: readonly string[] | string;
}

const columnsOf = (list: string): string[] => list.replace(/[{}"]/g, "").split(",");

// When a row is deleted, the database searches for rows that refer to it. Without an index that begins with the columns
// of the reference, the database reads the whole table.
test("every reference from one table to another has an index", async () => {
  const { client } = await testDatabase();
  const statement = postgresqlAddress() === undefined ? ON_SQLITE : ON_POSTGRESQL;
  const references = await client.$queryRawUnsafe<Reference[]>(statement);
  expect(references.length).toBeGreaterThan(20);
  const without = references.filter(({ columns, indexes }) => {
    const referring = columnsOf(columns);
    const lists: readonly string[] = typeof indexes === "string" ? JSON.parse(indexes) : indexes;
    return !lists.some((list) =>
      columnsOf(list)
        .slice(0, referring.length)
        .every((column) => referring.includes(column)),
    );
  });
  expect(without.map(({ table, columns }) => `${table} ${columns}`)).toEqual([]);
});
