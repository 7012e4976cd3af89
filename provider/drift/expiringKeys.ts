import { expiryOf, SOON_DAYS } from "@gatehouse-access/sdk/policy";
import { DAY } from "@gatehouse-access/sdk/times";
import { type Exception, exceptionFor, type OwnResource } from "../namespace/coverage.ts";
import type { NamespaceState } from "../namespace/namespaceState.ts";
import { apiKey, apiKeysOf } from "../resources/apiKey/index.ts";
import { apiKeyIdentity, type KeyIdentity } from "../resources/apiKey/listing.ts";
import { displayTime } from "../words.ts";
import type { ExpiringKey } from "./driftReport.ts";

/**
 * Returns the API keys that have expired or expire soon. If the resource of a key sets `rotateBefore`, the key is
 * returned that number of days before its expiry.
 * @param managed the resources of this stack and of the stacks in `--with-stack`
 */
export function expiringKeys(
  live: NamespaceState,
  managed: readonly OwnResource[],
  exceptions: readonly Exception[],
): ExpiringKey[] {
  const now = new Date();
  const { tenant } = live;
  const { definition } = apiKey;
  const owners = new Map<string, OwnResource>();
  // Keys that a rotation has replaced are not reported, since they expire as intended.
  const replaced = new Set<string>();
  for (const resource of managed) {
    if (resource.definition !== definition || !resource.outputs) continue;
    owners.set(apiKeyIdentity(resource.outputs as unknown as KeyIdentity), resource);
    for (const old of (resource.outputs.previous ?? []) as KeyIdentity[]) replaced.add(apiKeyIdentity(old));
  }
  return (apiKeysOf(live) ?? []).flatMap(({ name, role, expiresIn, ...key }): ExpiringKey[] => {
    const identity = apiKeyIdentity(key);
    const ends = expiryOf(expiresIn);
    const owner = owners.get(identity);
    const { rotateBefore } = owner?.inputs ?? {};
    const days = typeof rotateBefore === "number" && rotateBefore > 0 ? rotateBefore : SOON_DAYS;
    if (ends === null || replaced.has(identity) || ends.getTime() - now.getTime() > days * DAY) return [];
    const object = { definition, id: `${tenant}/${name}`, name, state: {} };
    if (!owner && exceptionFor(exceptions, object, now)) return [];
    const expiresAt = ends.toISOString();
    const what =
      ends <= now
        ? `expired at ${displayTime(expiresAt)}; replace or revoke the key`
        : `expires at ${displayTime(expiresAt)}; replace the key before this time`;
    return [{ tenant, name, expiresAt, message: `API key ${JSON.stringify(name)} (${role}) ${what}` }];
  });
}
