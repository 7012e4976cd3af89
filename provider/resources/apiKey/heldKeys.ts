import { ResourceError, said } from "../../resourceError.ts";
import { doubtAbout, isMissingObject, isProvenMissing, requireAbsent } from "../../service/absence.ts";
import type { Connection, TenantClient } from "../../service/connection.ts";
import type { ApiKey } from "../../service/listings.ts";
import { apiKeyIdentity, apiKeys, type KeyIdentity } from "./listing.ts";

/** A held key: an API key that a state contains. It may have been renamed or revoked since the state was written. */
export interface HeldKey extends KeyIdentity {
  /** The id of the key's namespace. */
  readonly tenant: string;
  /** The name of the key in the state. */
  readonly name: string;
}

type InTenant = Omit<HeldKey, "tenant">;

/** Returns a key as the service lists it, with its current name. Returns undefined if the key no longer exists. */
export async function listed(opened: TenantClient, key: InTenant): Promise<ApiKey | undefined> {
  const identity = apiKeyIdentity(key);
  const listing = opened.listing(apiKeys);
  return (await listing.find(`${identity} ${key.name}`)) ?? listing.find(identity);
}

/**
 * Returns the current name of a key. The name may have changed out of band since the state was written.
 * @throws Error if the key no longer exists
 */
export async function nameOf(opened: TenantClient, key: InTenant): Promise<string> {
  const found = await listed(opened, key);
  if (found) return found.name;
  throw new ResourceError("ApiKey", {
    code: "object_deleted",
    detail: said`"${key.name}" no longer exists: it was revoked after the state was written`,
    remedy: said`${{ phrase: "refresh" }}`,
  });
}

/**
 * Revokes a key if it exists.
 * @throws Error if the state does not contain the creation time of the key. The key then cannot be identified, because
 *   another key may have the same name.
 */
export async function revoke(connection: Connection, key: HeldKey): Promise<void> {
  if (!key.createdAt) {
    throw new ResourceError("ApiKey", {
      code: "ambiguous_object",
      detail: said`cannot identify "${key.name}": the state does not contain its time of creation, and another key may have the same name`,
      remedy: said`revoke the key manually, and remove it from the state`,
    });
  }
  const opened = await connection.tenant(key.tenant);
  const found = await listed(opened, key);
  if (!found) return;
  await opened
    .listing(apiKeys)
    .remove(apiKeyIdentity(found), opened.client, (witnessed) =>
      witnessed.deleteApiKey({ params: { key: found.name } }),
    );
  opened.listing(apiKeys).drop(found);
}

/**
 * Makes the name `name` available to a new key. If a key in `keys` currently has this name, renames that key to
 * `otherName`.
 */
export async function giveUpName(
  opened: TenantClient,
  keys: readonly HeldKey[],
  name: string,
  otherName: string,
): Promise<void> {
  const candidates = keys.filter((key) => key.name === name && key.tenant === opened.tenant);
  const today = await Promise.all(candidates.map((key) => listed(opened, key)));
  const found = today.find((key) => key?.name === name);
  if (!found) return;
  await rename(opened, found, otherName).catch(async (error: unknown) => {
    if (!isMissingObject(error)) throw error;
    const doubt = isProvenMissing(error) ? undefined : doubtAbout(error);
    await requireAbsent("ApiKey", found.name, doubt, () =>
      opened.listing(apiKeys).isListed(apiKeyIdentity(found)),
    );
  });
}

/** Renames a key. */
export async function rename({ client, listing }: TenantClient, key: ApiKey, name: string): Promise<void> {
  await client.updateApiKey({ params: { key: key.name }, body: { name } });
  listing(apiKeys).drop(key);
  listing(apiKeys).put({ ...key, name });
}
