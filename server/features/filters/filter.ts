import type { filter } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import type { SqlClient } from "../../db/sql/sql.ts";
import { NotFoundError } from "../../errors.ts";
import { tagNames } from "../tags/tagList.ts";
import { knownTags } from "../tags/tagTables.ts";

type Filter = z.output<typeof filter>;

/** A filter as stored in keys and rules. In a filter by tags, `hostname` is null. */
export interface StoredFilter {
  readonly hostname: string | null;
  readonly tags: readonly { readonly tag: string }[];
}

/**
 * Checks that the namespace uses each tag of a filter (rules section 16.4).
 * @param field name of the request's field with the tags
 * @throws NotFoundError the namespace does not use a tag
 */
export async function checkTagsUsed(
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
 * Checks that the namespace uses all tags of a filter.
 * @throws NotFoundError the namespace does not use one of the tags
 */
export async function checkFilter(tx: SqlClient, tenantId: string, { tags }: Filter): Promise<void> {
  if (tags) await checkTagsUsed(tx, tenantId, tags, "filter.tags");
}

/**
 * Returns the columns that store a filter in a row of the keys or rules table. The filter's tags are in a separate
 * table.
 */
export const filterColumn = ({ hostname }: Filter) => ({ hostname: hostname ?? null });

/** Converts a filter to its wire format: either the tags or the host name (models section 5). */
export function presentFilter({ hostname, tags }: StoredFilter): Filter {
  return hostname === null ? { tags: tagNames(tags) } : { hostname };
}

/**
 * Returns a filter as a declared field. The tags are sorted, so that a different order of the same tags is no change.
 */
export function declaredFilter({ hostname, tags }: StoredFilter): Filter {
  return hostname === null ? { tags: tagNames(tags).sort() } : { hostname };
}
