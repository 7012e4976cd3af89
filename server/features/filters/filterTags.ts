import type { RowOf } from "../../db/sql/rows.ts";
import { inTransaction, type Transaction } from "../../db/sql/transaction.ts";
import { InvalidError, NotFoundError, type ServiceError } from "../../errors.ts";
import type { Services } from "../../services.ts";
import { tagAdded, tagNames, tagRemoved } from "../tags/tagList.ts";
import { checkTagsUsed } from "./filter.ts";
import type { Filtered, FilteredRows } from "./filteredRows.ts";

/** A key or rule, whose filter's tags can be changed one by one. */
export interface FilterOwner<M extends Filtered> {
  readonly noun: "key" | "rule";
  /** The error for replacing the tags of a filter by host name: 404 for a key, 400 for a rule (16.5). */
  readonly RefusedReplacement: new (
    message: string,
  ) => ServiceError;
  readonly rows: FilteredRows<M>;
  readonly key: Partial<RowOf<M>> & { readonly tenantId: string };
}

/** @throws NotFoundError no such key or rule */
function changeTags<M extends Filtered>(
  services: Services,
  owner: FilterOwner<M>,
  Refused: new (message: string) => ServiceError,
  next: (tags: readonly string[], tx: Transaction) => Promise<readonly string[]>,
): Promise<void> {
  return inTransaction(services, async (tx) => {
    const row = await owner.rows.find(tx, owner.key);
    if (row === null) throw new NotFoundError(`no such ${owner.noun}`);
    if (row.hostname !== null)
      throw new Refused(`the filter of the ${owner.noun} is by hostname, not by tags`);
    await owner.rows.replaceTags(tx, row, await next(tagNames(row.tags), tx));
  });
}

/**
 * @throws InvalidError the filter is by host name
 * @throws NotFoundError nothing in the namespace carries the tag
 * @throws ConflictError, ForbiddenError see {@link tagAdded}
 */
export function addFilterTag<M extends Filtered>(
  services: Services,
  owner: FilterOwner<M>,
  tag: string,
): Promise<void> {
  return changeTags(services, owner, InvalidError, async (tags, tx) => {
    await checkTagsUsed(tx, owner.key.tenantId, [tag], "tag");
    return tagAdded(tags, tag, owner.noun);
  });
}

/**
 * @throws InvalidError the filter is by host name, or would match every device from then on (rules 16.7)
 * @throws NotFoundError the tag is not in the filter
 */
export function removeFilterTag<M extends Filtered>(
  services: Services,
  owner: FilterOwner<M>,
  tag: string,
): Promise<void> {
  return changeTags(services, owner, InvalidError, async (tags) => {
    const left = tagRemoved(tags, tag, owner.noun);
    if (left.length === 0) throw new InvalidError(`tag: is the last one in the filter of the ${owner.noun}`);
    return left;
  });
}

/** @throws NotFoundError nothing in the namespace carries one of the tags */
export function replaceFilterTags<M extends Filtered>(
  services: Services,
  owner: FilterOwner<M>,
  tags: readonly string[],
): Promise<void> {
  return changeTags(services, owner, owner.RefusedReplacement, async (_, tx) => {
    await checkTagsUsed(tx, owner.key.tenantId, tags, "tags");
    return tags;
  });
}
