import { ResourceError, said } from "../../resourceError.ts";
import { completeList } from "../../service/absence.ts";
import { type ApiKey, type ListingSource, PAGE_SIZE } from "../../service/listings.ts";

/** The immutable identity of an API key, which distinguishes keys even if their names change. */
export interface KeyIdentity {
  readonly createdAt: string;
  /**
   * The user who created the key. Undefined in states that earlier versions wrote, because they could not read the
   * creator from all servers.
   */
  readonly createdBy?: string | undefined;
}

/**
 * Returns the immutable identity of an API key as a string: its creation time and its creator. The time is truncated to
 * milliseconds, because the response to a create contains a more precise time than the service stores.
 */
export function apiKeyIdentity({ createdAt, createdBy }: KeyIdentity): string {
  const time = Date.parse(createdAt);
  // The form of this string must not change. After a rotation without a response, the temporary name of the new key
  // contains a digest of such a string.
  return `${Number.isNaN(time) ? createdAt : new Date(time).toISOString()} ${createdBy ?? "somebody"}`;
}

/**
 * The API keys of a namespace. The listing has four lookup keys for each API key: identity and name, identity, creation
 * time, and name.
 */
export const apiKeys: ListingSource<ApiKey> = (client) => {
  const keysOf = (key: ApiKey) => {
    const identity = apiKeyIdentity(key);
    return [`${identity} ${key.name}`, identity, apiKeyIdentity({ createdAt: key.createdAt }), key.name];
  };
  const query = { sortBy: "created_at", orderBy: "asc", perPage: PAGE_SIZE } as const;
  const kind = "ApiKey";
  const pages = () => client.pages("listApiKeys", { query });
  return {
    kind,
    keysOf,
    pages,
    prefer: () => undefined,
    // The service has no request for a single key.
    async look(wanted) {
      const keys = await completeList(kind, pages, (key) => keysOf(key).join());
      const found = keys.filter((key) => keysOf(key).includes(wanted));
      if (found.length > 1) throw ambiguousKeys(found);
      return found[0];
    },
  };
};

const ambiguousKeys = (keys: readonly ApiKey[]) =>
  new ResourceError("ApiKey", {
    code: "ambiguous_object",
    detail: said`cannot distinguish the keys ${keys.map(({ name }) => `"${name}"`).join(" and ")}: they were created in the same millisecond`,
    remedy: said`revoke both keys manually, and ${{ phrase: "refresh" }}`,
  });
