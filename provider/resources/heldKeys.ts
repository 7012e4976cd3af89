import { ResourceError, said } from "../resourceError.ts";
import type { Connection, TenantClient } from "../service/connection.ts";
import { type ApiKey, apiKeyIdentity, type KeyIdentity, undefinedIfMissing } from "../service/listings.ts";

/** An API key that a state holds. Somebody may have renamed or revoked it since. */
export interface HeldKey extends KeyIdentity {
  /** Id of its namespace. */
  readonly tenant: string;
  /** The name under which the state holds it. */
  readonly name: string;
}

type InTenant = Omit<HeldKey, "tenant">;

/** The key as the service lists it today, under whatever name; undefined when it is gone. */
export async function listed({ apiKeys }: TenantClient, key: InTenant): Promise<ApiKey | undefined> {
  const identity = apiKeyIdentity(key);
  return (await apiKeys.find(`${identity} ${key.name}`)) ?? apiKeys.find(identity);
}

/**
 * The name that the key has today; somebody else may have changed it.
 * @throws Error when the key is gone
 */
export async function nameOf(opened: TenantClient, key: InTenant): Promise<string> {
  const found = await listed(opened, key);
  if (found) return found.name;
  throw new ResourceError("ApiKey", {
    code: "object_deleted",
    detail: said`"${key.name}" is gone: somebody revoked it since the state was written`,
    remedy: said`${{ phrase: "refresh" }}`,
  });
}

/**
 * Revokes a key, if it is there.
 * @throws Error when the state does not say when the key was made, so that it could be another one of that name
 */
export async function revoke(connection: Connection, key: HeldKey): Promise<void> {
  if (!key.createdAt) {
    throw new ResourceError("ApiKey", {
      code: "ambiguous_object",
      detail: said`the state does not say when "${key.name}" was made, so that nothing tells it from another of that name`,
      remedy: said`revoke it by hand, and remove it from the state`,
    });
  }
  const opened = await connection.tenant(key.tenant);
  const found = await listed(opened, key);
  if (!found) return;
  await undefinedIfMissing(opened.client.deleteApiKey({ params: { key: found.name } }), () =>
    isStillListed(opened, key),
  );
  opened.apiKeys.drop(found);
}

/** Renames the one of these keys that has a name, if one has it, so that a new key can have the name. */
export async function giveUpName(
  opened: TenantClient,
  keys: readonly HeldKey[],
  name: string,
  otherName: string,
): Promise<void> {
  const mayHaveIt = keys.filter((key) => key.name === name && key.tenant === opened.tenant);
  const today = await Promise.all(mayHaveIt.map((key) => listed(opened, key)));
  const found = today.find((key) => key?.name === name);
  if (!found) return;
  await undefinedIfMissing(rename(opened, found, otherName), () => isStillListed(opened, found));
}

/** Gives a key another name. */
export async function rename({ client, apiKeys }: TenantClient, key: ApiKey, name: string): Promise<void> {
  await client.updateApiKey({ params: { key: key.name }, body: { name } });
  apiKeys.drop(key);
  apiKeys.put({ ...key, name });
}

/** Asks the service once more whether the key is there. */
async function isStillListed(opened: TenantClient, key: InTenant): Promise<boolean> {
  opened.apiKeys.forget();
  return (await listed(opened, key)) !== undefined;
}
