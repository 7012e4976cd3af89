import type { filter } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import type { SqlClient } from "../../db/sql/sql.ts";
import { NotFoundError } from "../../errors.ts";
import { tagNames } from "../tags/tagList.ts";
import { knownTags } from "../tags/tagTables.ts";

export type Filter = z.output<typeof filter>;

/** A filter as keys and rules store it; the host name is null in a filter by tags. */
export interface StoredFilter {
  readonly hostname: string | null;
  readonly tags: readonly { readonly tag: string }[];
}

/**
 * Checks that each tag of a filter is in use in the namespace (rules section 16.4).
 * @param field name of the request's field with the tags
 * @throws NotFoundError a tag is not in use
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
    throw new NotFoundError(`${field}: ${missing.join(", ")} not used in the namespace`);
}

/** @throws NotFoundError a tag is not used in the namespace */
export async function checkFilter(tx: SqlClient, tenantId: string, { tags }: Filter): Promise<void> {
  if (tags) await checkTagsUsed(tx, tenantId, tags, "filter.tags");
}

/** The column of a filter that a key or a rule has itself. */
export const filterColumn = ({ hostname }: Filter) => ({ hostname: hostname ?? null });

/** Converts a filter to its wire format: the variant in use (models section 5). */
export function presentFilter({ hostname, tags }: StoredFilter): Filter {
  return hostname === null ? { tags: tagNames(tags) } : { hostname };
}

/** The declared form of a filter: its tags are a set. */
export function declaredFilter(stored: StoredFilter): Filter {
  const { tags, ...rest } = presentFilter(stored);
  return tags === undefined ? rest : { tags: tags.toSorted() };
}
