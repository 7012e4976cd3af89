import { type Sql, sql } from "../../db/sql/sql.ts";
import { ConflictError, ForbiddenError, NotFoundError } from "../../errors.ts";

/** Maximum number of tags on a device, key or rule (rules section 16.2). */
const MAXIMUM_TAGS = 3;

/** Reads an object's tags in the order that the caller gave them. */
export const withTags = { tags: { orderBy: { position: "asc" } } } as const;

/** The rows that store an object's tags and their order. */
export const tagRows = (tags: readonly string[]) => tags.map((tag, position) => ({ tag, position }));

/**
 * The tags of an object in their order, as one column, which {@link tagNamesIn} reads. No tag holds a comma.
 * @param from table of the tags
 * @param owner condition that a tag belongs to the object
 */
export const tagsColumn = (from: Sql, owner: Sql): Sql =>
  sql`(SELECT string_agg("tag", ',' ORDER BY "position") FROM ${from} WHERE ${owner})`;

/** The tags of a column, which is null without one. */
export const tagNamesIn = (column: string | null): string[] => (column ? column.split(",") : []);

export const tagNames = (rows: readonly { readonly tag: string }[]): string[] => rows.map((row) => row.tag);

/**
 * @param owner kind of the object with the tags, as in "a device"
 * @throws ConflictError the object has the tag already
 * @throws ForbiddenError the object has as many tags as it may have
 */
export function tagAdded(tags: readonly string[], tag: string, owner: string): string[] {
  if (tags.includes(tag)) throw new ConflictError(`tag: is on the ${owner} already`);
  if (tags.length >= MAXIMUM_TAGS)
    throw new ForbiddenError(`a ${owner} may have ${MAXIMUM_TAGS} tags at most`);
  return [...tags, tag];
}

/** @throws NotFoundError the object does not have the tag */
export function tagRemoved(tags: readonly string[], tag: string, owner: string): string[] {
  if (!tags.includes(tag)) throw new NotFoundError(`tag: is not on the ${owner}`);
  return tags.filter((other) => other !== tag);
}
