import type { Operation } from "@gatehouse-access/sdk/contract";
import type { Declared } from "../../changes/managedObject.ts";
import { InvalidError, NotFoundError, type ServiceError } from "../../errors.ts";
import type { Member } from "../../http/access/identity.ts";
import type { WriteContext } from "../../http/handler.ts";
import { tagAdded, tagNames, tagRemoved, tagRows } from "../tags/tagList.ts";
import { checkTagsUsed } from "./filter.ts";
import type { Filtered, FilteredRow, FilteredRows } from "./filteredRows.ts";

/** The kind of object with the filter: public keys or firewall rules. */
export interface FilterOwner<M extends Filtered> {
  readonly noun: "key" | "rule";
  /**
   * The error for a request that sets tags in a filter by host name: 404 for a key, 400 for a rule (rules section
   * 16.5).
   */
  readonly RefusedReplacement: new (
    message: string,
  ) => ServiceError;
  readonly rows: FilteredRows<M>;
  readonly declared: (row: FilteredRow<M>) => Declared;
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
  if (found === null) throw new NotFoundError(`no such ${owner.noun}`);
  if (found.hostname !== null)
    throw new Rejection(`the filter of the ${owner.noun} selects by hostname, not by tags`);
  const tags = await next(tagNames(found.tags));
  await owner.rows.replaceTags(db, found, tags);
  became(owner.declared({ ...found, tags: tagRows(tags) }));
}

/**
 * Adds a tag to a filter.
 * @throws InvalidError the filter is by host name
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
 * @throws InvalidError the filter is by host name, or the tag is the last tag of the filter. A filter without tags
 * would match every device (rules section 16.7).
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
      throw new InvalidError(`tag: is the last tag in the filter of the ${owner.noun}`);
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
