import { inTransaction, type Transaction } from "../../db/transaction.ts";
import { InvalidError, NotFoundError, type ServiceError } from "../../errors.ts";
import type { Services } from "../../services.ts";
import { tagAdded, tagNames, tagRemoved } from "../tags/tagList.ts";
import { checkTagsUsed, type StoredFilter } from "./filter.ts";

/** A key or rule, whose filter's tags can be changed one by one. */
export interface FilterOwner {
  readonly noun: "key" | "rule";
  readonly tenantId: string;
  /** The error for replacing the tags of a filter by host name: 404 for a key, 400 for a rule (16.5). */
  readonly RefusedReplacement: new (
    message: string,
  ) => ServiceError;
  read(tx: Transaction): Promise<StoredFilter | null>;
  write(tx: Transaction, tags: readonly string[]): Promise<unknown>;
}

/** @throws NotFoundError no such key or rule */
function changeTags(
  services: Services,
  owner: FilterOwner,
  Refused: new (message: string) => ServiceError,
  next: (tags: readonly string[], tx: Transaction) => Promise<readonly string[]>,
): Promise<void> {
  return inTransaction(services, async (tx) => {
    const filter = await owner.read(tx);
    if (filter === null) throw new NotFoundError(`no such ${owner.noun}`);
    if (filter.hostname !== null)
      throw new Refused(`the filter of the ${owner.noun} is by hostname, not by tags`);
    await owner.write(tx, await next(tagNames(filter.tags), tx));
  });
}

/**
 * @throws InvalidError the filter is by host name
 * @throws NotFoundError nothing in the namespace carries the tag
 * @throws ConflictError, ForbiddenError see {@link tagAdded}
 */
export function addFilterTag(services: Services, owner: FilterOwner, tag: string): Promise<void> {
  return changeTags(services, owner, InvalidError, async (tags, tx) => {
    await checkTagsUsed(tx, owner.tenantId, [tag], "tag");
    return tagAdded(tags, tag, owner.noun);
  });
}

/**
 * @throws InvalidError the filter is by host name, or would match every device from then on (rules 16.7)
 * @throws NotFoundError the tag is not in the filter
 */
export function removeFilterTag(services: Services, owner: FilterOwner, tag: string): Promise<void> {
  return changeTags(services, owner, InvalidError, async (tags) => {
    const left = tagRemoved(tags, tag, owner.noun);
    if (left.length === 0) throw new InvalidError(`tag: is the last one in the filter of the ${owner.noun}`);
    return left;
  });
}

/** @throws NotFoundError nothing in the namespace carries one of the tags */
export function replaceFilterTags(
  services: Services,
  owner: FilterOwner,
  tags: readonly string[],
): Promise<void> {
  return changeTags(services, owner, owner.RefusedReplacement, async (_, tx) => {
    await checkTagsUsed(tx, owner.tenantId, tags, "tags");
    return tags;
  });
}
