import type { Access, AccessRule } from "@gatehouse-access/sdk/policy";
import type { ReviewedAccess } from "./report/review.ts";

/**
 * Patterns that change although nothing that was looked at tells the two apart. Only examples of login names, addresses
 * and devices are looked at: without a word about such a change it would seem to mean nothing.
 * @param changes the access that the change gives and takes
 * @returns sentences
 */
export function undistinguished(
  before: Access,
  after: Access,
  changes: readonly Pick<ReviewedAccess, "keys">[],
): string[] {
  const seen = new Set(changes.flatMap(({ keys }) => keys.map(({ fingerprint }) => fingerprint)));
  const oldKeys = new Map(before.policy.keys.map((key) => [key.fingerprint, key]));
  const keys = after.policy.keys
    .filter(({ fingerprint }) => !seen.has(fingerprint))
    .flatMap((key) => differences(`key ${key.name}`, oldKeys.get(key.fingerprint), key));
  // Where access changes, nobody can tell which rule changes it. The lines show that there is something to look at.
  if (changes.length > 0) return keys;
  const oldRules = new Map(before.policy.rules.map((rule) => [rule.id, rule]));
  const rules = after.policy.rules.flatMap((rule) =>
    differences(`rule ${rule.id}`, oldRules.get(rule.id), rule),
  );
  return [...keys, ...rules];
}

type Patterned = Pick<AccessRule, "username" | "filter"> & Partial<Pick<AccessRule, "sourceIp">>;

function differences(title: string, old: Patterned | undefined, now: Patterned): string[] {
  const before: Readonly<Record<string, string>> = patternsOf(old ?? now);
  return Object.entries(patternsOf(now))
    .filter(([field, pattern]) => before[field] !== pattern)
    .map(
      ([field, pattern]) =>
        `${title}: ${field} changes from ${JSON.stringify(before[field])} to ${JSON.stringify(pattern)}, which no ` +
        "login name, address or device that was looked at tells apart (--login and --from add some)",
    );
}

const patternsOf = ({ username, sourceIp = "", filter: { hostname = "" } }: Patterned) => ({
  username,
  sourceIp,
  hostname,
});
