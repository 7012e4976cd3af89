import { type Sql, sql } from "../../db/sql/sql.ts";
import { ConflictError, ForbiddenError, NotFoundError } from "../../errors.ts";

/** Maximum number of tags on a device, key or rule (rules section 16.2). */
const MAXIMUM_TAGS = 3;

/** Includes an object's tags in a query, in the order in which the caller set them. */
export const withTags = { tags: { orderBy: { position: "asc" } } } as const;

/** Returns the database rows for an object's tags, with the position of each tag. */
export const tagRows = (tags: readonly string[]) => tags.map((tag, position) => ({ tag, position }));

/**
 * Returns SQL for a column that contains the tags of an object, in order, separated by commas. Tags cannot contain
 * commas. {@link tagNamesIn} parses the column.
 * @param from table of the tags
 * @param owner condition that selects the tags of the object
 */
export const tagsColumn = (from: Sql, owner: Sql): Sql =>
  sql`(SELECT string_agg("tag", ',' ORDER BY "position") FROM ${from} WHERE ${owner})`;

/** Parses a column of tags. The column is null if the object has no tags. */
export const tagNamesIn = (column: string | null): string[] => (column ? column.split(",") : []);

export const tagNames = (rows: readonly { readonly tag: string }[]): string[] => rows.map((row) => row.tag);

/**
 * Returns the tags of an object with one more tag.
 * @param owner kind of the object that has the tags, for example "device"
 * @throws ConflictError the object already has the tag
 * @throws ForbiddenError the object has the maximum number of tags
 */
export function tagAdded(tags: readonly string[], tag: string, owner: string): string[] {
  if (tags.includes(tag)) throw new ConflictError(`tag: the ${owner} already has this tag`);
  if (tags.length >= MAXIMUM_TAGS)
    throw new ForbiddenError(`a ${owner} can have at most ${MAXIMUM_TAGS} tags`);
  return [...tags, tag];
}

/**
 * Returns the tags without the given tag.
 * @throws NotFoundError the object does not have the tag
 */
export function tagRemoved(tags: readonly string[], tag: string, owner: string): string[] {
  if (!tags.includes(tag)) throw new NotFoundError(`tag: the ${owner} does not have this tag`);
  return tags.filter((other) => other !== tag);
}
