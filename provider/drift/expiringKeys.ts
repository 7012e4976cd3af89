import { expiryOf } from "@gatehouse-access/sdk/policy";
import { type Exception, exceptionFor } from "../inventory/exceptions.ts";
import { definitionNamed } from "../inventory/liveObjects.ts";
import type { OwnResource } from "../inventory/managedObjects.ts";
import { apiKeyIdentity, type KeyIdentity } from "../resources/listings.ts";
import type { Estate } from "../review/estate.ts";
import type { ExpiringKey } from "./driftReport.ts";

const DAY = 24 * 60 * 60 * 1000;
/** Days before its end in which a key is due. */
const SOON_DAYS = 14;

/** The API keys that have expired or are due. A resource that replaces its key in time says by itself when that is due. */
export function expiringKeys(
  { tenant, apiKeys = [] }: Pick<Estate, "tenant" | "apiKeys">,
  own: readonly OwnResource[],
  exceptions: readonly Exception[],
): ExpiringKey[] {
  const now = Date.now();
  const definition = definitionNamed("ApiKey");
  const resources = own.filter((resource) => resource.definition.name === "ApiKey");
  return apiKeys.flatMap((key): ExpiringKey[] => {
    const ends = expiryOf(key.expiresIn);
    const identity = apiKeyIdentity(key);
    const isOf = (outputs: unknown) => apiKeyIdentity(outputs as KeyIdentity) === identity;
    const owner = resources.find(({ outputs }) => outputs && isOf(outputs));
    // What a rotation leaves behind ends by itself, and is meant to.
    const isReplaced = resources.some(({ outputs }) =>
      (outputs?.previous as unknown[] | undefined)?.some(isOf),
    );
    const { rotateBefore } = owner?.inputs ?? {};
    const days = typeof rotateBefore === "number" && rotateBefore > 0 ? rotateBefore : SOON_DAYS;
    if (ends === null || isReplaced || ends.getTime() - now > days * DAY) return [];
    const object = { definition, id: `${tenant}/${key.name}`, name: key.name, state: undefined };
    if (!owner && exceptionFor(exceptions, object, new Date(now))) return [];
    const expiresAt = ends.toISOString();
    const isOver = ends.getTime() <= now;
    const message = isOver
      ? `API key ${JSON.stringify(key.name)} (${key.role}) expired at ${expiresAt}: replace it, or revoke it`
      : `API key ${JSON.stringify(key.name)} (${key.role}) expires at ${expiresAt}: replace it before`;
    return [{ tenant, name: key.name, expiresAt, message }];
  });
}
