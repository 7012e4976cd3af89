import { deleteRows, hasKey, insertRows, type RowOf } from "../../db/sql/rows.ts";
import { leaveToCommit, readRows, type Sql, type SqlClient, sql } from "../../db/sql/sql.ts";
import { tagNamesIn, tagRows, tagsColumn } from "../tags/tagList.ts";
import { tagId } from "../tags/tagTables.ts";
import type { StoredFilter } from "./filter.ts";

/**
 * The database models with a filter: public keys and firewall rules. `uses` is the model that stores the filter's tags,
 * and `tags` is its view with the names of the tags.
 */
const TAGS_OF = {
  PublicKey: { uses: "PublicKeyTagUse", tags: "PublicKeyTag" },
  FirewallRule: { uses: "FirewallRuleTagUse", tags: "FirewallRuleTag" },
} as const;

/** Name of a database model with a filter. */
export type Filtered = keyof typeof TAGS_OF;
type FilterTag<M extends Filtered> = RowOf<(typeof TAGS_OF)[M]["uses"]>;
/** The foreign-key columns with which a tag row refers to its public key or firewall rule. */
type OwnerColumn<M extends Filtered> = Exclude<keyof FilterTag<M>, "tagId" | "position">;

/** A public key or firewall rule, with the tags of its filter. */
export type FilteredRow<M extends Filtered> = RowOf<M> & Pick<StoredFilter, "hostname" | "tags">;

/** Functions that read public keys or firewall rules and change the tags of their filters. */
export interface FilteredRows<M extends Filtered> {
  /** SQL join condition between the key or rule and its tag rows. */
  readonly owner: Sql;
  /** The columns of a key or rule, and the text that {@link withTags} converts. */
  readonly columns: Sql;
  /** Converts a row of {@link columns}. */
  withTags<Row extends object>(row: Row): Row & Pick<StoredFilter, "tags">;
  /** Returns the row with the unique key, or null if no such row exists. */
  find(db: SqlClient, key: Partial<RowOf<M>>): Promise<FilteredRow<M> | null>;
  /** Returns the first row whose filter contains only this tag, or null if no such row exists. */
  findByOnlyTag(db: SqlClient, tenantId: string, tag: string, order: Sql): Promise<RowOf<M> | null>;
  /**
   * Adds tags to a filter that has no tags yet. The namespace must use the tags. The transaction waits for the statement
   * before the commit.
   */
  insertTags(
    db: SqlClient,
    row: Partial<RowOf<M>> & { readonly tenantId: string },
    tags: readonly string[],
  ): Promise<void>;
  /** Replaces the tags of a row's filter. The transaction waits for the statements before the commit. */
  replaceTags(db: SqlClient, row: FilteredRow<M>, tags: readonly string[]): Promise<void>;
}

/**
 * Returns the {@link FilteredRows} functions for a database model.
 * @param owner the foreign key of a tag row: each of its columns, with the referenced column of the key or rule
 */
export function filteredRows<M extends Filtered>(
  model: M,
  owner: Readonly<Record<OwnerColumn<M>, keyof RowOf<M> & string>>,
): FilteredRows<M> {
  const { uses, tags: view } = TAGS_OF[model];
  const references = Object.entries<keyof RowOf<M> & string>(owner);
  const [rows, tags] = [sql.column(model), sql.column(view)];
  const owned = references.map(
    ([column, of]) => sql`${tags}.${sql.column(column)} = ${rows}.${sql.column(of)}`,
  );
  const ownerOf = (row: Partial<RowOf<M>>) =>
    Object.fromEntries(references.map(([column, of]) => [column, row[of]])) as Partial<FilterTag<M>>;
  const condition = sql.join(owned, " AND ");
  // Only a filter without a host name has tags, so the database looks for the tags of these filters only.
  const tagList = sql`CASE WHEN ${rows}."hostname" IS NULL THEN ${tagsColumn(tags, condition)} END`;

  const filtered: FilteredRows<M> = {
    owner: condition,
    columns: sql`${rows}.*, ${tagList} AS "tags"`,
    // The row is changed instead of copied. Lists convert many rows, and each copy would take as long as reading a row.
    withTags: (row) =>
      Object.assign(row, { tags: tagRows(tagNamesIn((row as { tags: string | null }).tags)) }),
    async find(db, key) {
      const query = sql`SELECT ${filtered.columns} FROM ${rows} WHERE ${hasKey(key)}`;
      const [row] = await readRows<FilteredRow<M>>(db, query);
      return row ? filtered.withTags(row) : null;
    },
    async findByOnlyTag(db, tenantId, tag, order) {
      const [row] = await readRows<RowOf<M>>(
        db,
        sql`SELECT ${rows}.* FROM ${tags} JOIN ${rows} ON ${condition}
          WHERE ${tags}."tenantId" = ${tenantId} AND ${tags}."tag" = ${tag}
            AND (SELECT COUNT(*) FROM ${tags} WHERE ${condition}) = 1
          ORDER BY ${order} LIMIT 1`,
      );
      return row ?? null;
    },
    insertTags(db, row, names) {
      const owner = ownerOf(row);
      const inserted = tagRows(names).map(({ tag, position }) => ({
        ...owner,
        tagId: tagId(row.tenantId, tag),
        position,
      }));
      return leaveToCommit(db, insertRows(db, uses, inserted));
    },
    async replaceTags(db, row, names) {
      if (row.tags.length > 0) await leaveToCommit(db, deleteRows(db, uses, ownerOf(row)));
      await filtered.insertTags(db, row, names);
    },
  };
  return filtered;
}
