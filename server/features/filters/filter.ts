import type { filter, Operation } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import { deleteRows, hasKey, insertRows, type RowOf } from "../../db/sql/rows.ts";
import { leaveToCommit, readRows, type Sql, type SqlClient, sql } from "../../db/sql/sql.ts";
import { InvalidError, NotFoundError, type ServiceError } from "../../errors.ts";
import type { Member } from "../../http/access/identity.ts";
import type { WriteContext } from "../../http/handler.ts";
import { tagAdded, tagNames, tagNamesIn, tagRemoved, tagRows, tagsColumn } from "../tags/tagList.ts";
import { knownTags, tagId } from "../tags/tagTables.ts";

type Filter = z.output<typeof filter>;

/** A filter as it is stored in keys and rules. If the filter selects by tags, `hostname` is null. */
export interface StoredFilter {
  readonly hostname: string | null;
  readonly tags: readonly { readonly tag: string }[];
}

/**
 * Checks that the namespace uses all tags of a filter (rules section 16.4).
 * @param field name of the request field that contains the tags
 * @throws NotFoundError the namespace does not use one of the tags
 */
async function checkTagsUsed(
  tx: SqlClient,
  tenantId: string,
  tags: readonly string[],
  field: string,
): Promise<void> {
  const known = await knownTags(tx, tenantId, tags);
  const missing = tags.filter((tag) => !known.includes(tag));
  if (missing.length > 0)
    throw new NotFoundError(`${field}: the namespace does not use ${missing.join(", ")}`);
}

/**
 * Checks that the namespace uses all tags of a filter. A filter by host name has no tags.
 * @throws NotFoundError the namespace does not use one of the tags
 */
export async function checkFilter(tx: SqlClient, tenantId: string, { tags }: Filter): Promise<void> {
  if (tags) await checkTagsUsed(tx, tenantId, tags, "filter.tags");
}

/**
 * Returns the column that stores the host name of a filter in the row of a key or rule. A separate table stores the
 * tags of the filter.
 */
export const filterColumn = ({ hostname }: Filter) => ({ hostname: hostname ?? null });

/** Converts a filter to its wire format: either the tags or the host name (models section 5). */
export function presentFilter({ hostname, tags }: StoredFilter): Filter {
  return hostname === null ? { tags: tagNames(tags) } : { hostname };
}

/**
 * Returns a filter as a declared field. The tags are sorted, so that a different order of the same tags is not a
 * change.
 */
export function declaredFilter({ hostname, tags }: StoredFilter): Filter {
  return hostname === null ? { tags: tagNames(tags).sort() } : { hostname };
}

/**
 * The database models with a filter: public keys and firewall rules. `uses` is the model that stores the tags of the
 * filter. `tags` is a view of this model that also contains the names of the tags.
 */
const TAGS_OF = {
  PublicKey: { uses: "PublicKeyTagUse", tags: "PublicKeyTag" },
  FirewallRule: { uses: "FirewallRuleTagUse", tags: "FirewallRuleTag" },
} as const;

/** Name of a database model with a filter. */
type Filtered = keyof typeof TAGS_OF;
type FilterTag<M extends Filtered> = RowOf<(typeof TAGS_OF)[M]["uses"]>;
/** The foreign-key columns with which a tag row refers to its public key or firewall rule. */
type OwnerColumn<M extends Filtered> = Exclude<keyof FilterTag<M>, "tagId" | "position">;

/** A public key or firewall rule, with the tags of its filter. */
export type FilteredRow<M extends Filtered> = RowOf<M> & Pick<StoredFilter, "hostname" | "tags">;

/** Functions that read public keys or firewall rules and change the tags of their filters. */
export interface FilteredRows<M extends Filtered> {
  /** SQL join condition between the key or rule and its tag rows. */
  readonly owner: Sql;
  /** The columns of a key or rule, and a string with its tags that {@link withTags} converts. */
  readonly columns: Sql;
  /** Replaces the string with the tags in a row of {@link columns} with the list of tags. */
  withTags<Row extends object>(row: Row): Row & Pick<StoredFilter, "tags">;
  /** Returns the row with the unique key, or null if the row does not exist. */
  find(db: SqlClient, key: Partial<RowOf<M>>): Promise<FilteredRow<M> | null>;
  /** Returns the first row whose filter contains only this tag. Returns null if no filter contains only this tag. */
  findByOnlyTag(db: SqlClient, tenantId: string, tag: string, order: Sql): Promise<RowOf<M> | null>;
  /**
   * Adds tags to a filter that has no tags. The namespace must already use the tags. The transaction waits for this
   * statement before it commits.
   */
  insertTags(
    db: SqlClient,
    row: Partial<RowOf<M>> & { readonly tenantId: string },
    tags: readonly string[],
  ): Promise<void>;
  /** Replaces the tags of a row's filter. The transaction waits for these statements before it commits. */
  replaceTags(db: SqlClient, row: FilteredRow<M>, tags: readonly string[]): Promise<void>;
}

/**
 * Returns the {@link FilteredRows} functions for a database model.
 * @param owner the foreign key of a tag row. Maps each of its columns to the referenced column of the key or rule.
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
  // A filter with a host name has no tags, so the database searches for tags only if there is no host name.
  const tagList = sql`CASE WHEN ${rows}."hostname" IS NULL THEN ${tagsColumn(tags, condition)} END`;

  const filtered: FilteredRows<M> = {
    owner: condition,
    columns: sql`${rows}.*, ${tagList} AS "tags"`,
    // The row is changed instead of copied. Lists convert many rows, and copying a row takes as long as reading it.
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

/** The kind of object that has the filter: public keys or firewall rules. */
export interface FilterOwner<M extends Filtered> {
  readonly noun: "key" | "rule";
  /**
   * The error for a request that replaces the tags of a filter by host name. The status is 404 for a key, and 400 for a
   * rule (rules section 16.5).
   */
  readonly RefusedReplacement: new (
    message: string,
  ) => ServiceError;
  readonly rows: FilteredRows<M>;
}

/** A request that changes the tags of a filter. */
type Change<M extends Filtered> = Pick<
  WriteContext<Operation, FilteredRow<M>>,
  "services" | "found" | "became"
> & { readonly identity: Pick<Member, "tenant"> };

/**
 * Changes the tags of a filter.
 * @throws NotFoundError the key or rule does not exist
 */
async function changeTags<M extends Filtered>(
  { services: { db }, found, became }: Change<M>,
  owner: FilterOwner<M>,
  Rejection: new (message: string) => ServiceError,
  next: (tags: readonly string[]) => readonly string[] | Promise<readonly string[]>,
): Promise<undefined> {
  const row = found();
  if (row.hostname !== null)
    throw new Rejection(`the filter of the ${owner.noun} selects by hostname, not by tags`);
  const tags = await next(tagNames(row.tags));
  await owner.rows.replaceTags(db, row, tags);
  became({ ...row, tags: tagRows(tags) });
}

/**
 * Adds a tag to a filter.
 * @throws InvalidError the filter selects by host name
 * @throws NotFoundError the namespace does not use the tag
 * @throws ConflictError, ForbiddenError see {@link tagAdded}
 */
export function addFilterTag<M extends Filtered>(
  context: Change<M>,
  owner: FilterOwner<M>,
  tag: string,
): Promise<undefined> {
  return changeTags(context, owner, InvalidError, async (tags) => {
    await checkTagsUsed(context.services.db, context.identity.tenant, [tag], "tag");
    return tagAdded(tags, tag, owner.noun);
  });
}

/**
 * Removes a tag from a filter.
 * @throws InvalidError the filter selects by host name, or has no other tag. A filter without tags would match every
 *   device (rules section 16.7).
 * @throws NotFoundError the tag is not in the filter
 */
export function removeFilterTag<M extends Filtered>(
  context: Change<M>,
  owner: FilterOwner<M>,
  tag: string,
): Promise<undefined> {
  return changeTags(context, owner, InvalidError, (tags) => {
    const remaining = tagRemoved(tags, tag, owner.noun);
    if (remaining.length === 0)
      throw new InvalidError(
        `tag: the filter of the ${owner.noun} has no other tag; add another tag to the filter first`,
      );
    return remaining;
  });
}

/**
 * Replaces the tags of a filter.
 * @throws NotFoundError the namespace does not use one of the tags
 */
export function replaceFilterTags<M extends Filtered>(
  context: Change<M>,
  owner: FilterOwner<M>,
  tags: readonly string[],
): Promise<undefined> {
  return changeTags(context, owner, owner.RefusedReplacement, async () => {
    await checkTagsUsed(context.services.db, context.identity.tenant, tags, "tags");
    return tags;
  });
}
