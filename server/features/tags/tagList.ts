import { ConflictError, ForbiddenError, NotFoundError } from "../../errors.ts";

/** Most tags of one device, key or rule (rules section 16.2). */
const MAXIMUM_TAGS = 3;

/** What tags are read with: their order is the caller's. */
export const withTags = { tags: { orderBy: { position: "asc" } } } as const;

/** Tags of an object as the rows that keep them and their order. */
export const tagRows = (tags: readonly string[]) => tags.map((tag, position) => ({ tag, position }));

export const tagNames = (rows: readonly { readonly tag: string }[]): string[] => rows.map((row) => row.tag);

/**
 * @param owner what has the tags, as in "a device"
 * @throws ConflictError it is there already
 * @throws ForbiddenError there is no room
 */
export function tagAdded(tags: readonly string[], tag: string, owner: string): string[] {
  if (tags.includes(tag)) throw new ConflictError(`tag: is on the ${owner} already`);
  if (tags.length >= MAXIMUM_TAGS)
    throw new ForbiddenError(`a ${owner} may have ${MAXIMUM_TAGS} tags at most`);
  return [...tags, tag];
}

/** @throws NotFoundError it is not there */
export function tagRemoved(tags: readonly string[], tag: string, owner: string): string[] {
  if (!tags.includes(tag)) throw new NotFoundError(`tag: is not on the ${owner}`);
  return tags.filter((other) => other !== tag);
}
