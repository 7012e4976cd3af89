import { expiryOf, SOON_DAYS } from "@gatehouse-access/sdk/policy";
import { type Exception, exceptionFor, type OwnResource } from "../estate/coverage.ts";
import { definitionNamed } from "../estate/liveObjects.ts";
import type { Estate } from "../estate/namespaceState.ts";
import { apiKeyIdentity, type KeyIdentity } from "../service/listings.ts";
import type { ExpiringKey } from "./driftReport.ts";

const DAY = 24 * 60 * 60 * 1000;

/**
 * The API keys that have expired or are due. A resource that replaces its key in time has its own date for that.
 * @param managed the resources of this stack and of those beside it
 */
export function expiringKeys(
  { tenant, apiKeys = [] }: Pick<Estate, "tenant" | "apiKeys">,
  managed: readonly OwnResource[],
  exceptions: readonly Exception[],
): ExpiringKey[] {
  const now = new Date();
  const definition = definitionNamed("ApiKey");
  const owners = new Map<string, OwnResource>();
  // What a rotation leaves behind ends by itself, and is meant to.
  const replaced = new Set<string>();
  for (const resource of managed) {
    if (resource.definition !== definition || !resource.outputs) continue;
    owners.set(apiKeyIdentity(resource.outputs as unknown as KeyIdentity), resource);
    for (const old of (resource.outputs.previous ?? []) as KeyIdentity[]) replaced.add(apiKeyIdentity(old));
  }
  return apiKeys.flatMap(({ name, role, expiresIn, ...key }): ExpiringKey[] => {
    const identity = apiKeyIdentity(key);
    const ends = expiryOf(expiresIn);
    const owner = owners.get(identity);
    const { rotateBefore } = owner?.inputs ?? {};
    const days = typeof rotateBefore === "number" && rotateBefore > 0 ? rotateBefore : SOON_DAYS;
    if (ends === null || replaced.has(identity) || ends.getTime() - now.getTime() > days * DAY) return [];
    const object = { definition, id: `${tenant}/${name}`, name, state: undefined };
    if (!owner && exceptionFor(exceptions, object, now)) return [];
    const expiresAt = ends.toISOString();
    const what =
      ends <= now
        ? `expired at ${expiresAt}: replace it, or revoke it`
        : `expires at ${expiresAt}: replace it before`;
    return [{ tenant, name, expiresAt, message: `API key ${JSON.stringify(name)} (${role}) ${what}` }];
  });
}
