import type { Access, AccessChange, AccessKey, AccessRule } from "@gatehouse-access/sdk/policy";

/**
 * Patterns that change although no login of the domain tells the two apart. A domain is made of examples: to say
 * nothing of such a change would be to say that it means nothing.
 * @param changes the access that the change gives and takes
 * @returns sentences
 */
export function undistinguished(
  before: Access,
  after: Access,
  changes: readonly { readonly keys: readonly Pick<AccessChange["key"], "fingerprint">[] }[],
): string[] {
  const seen = new Set(changes.flatMap(({ keys }) => keys.map(({ fingerprint }) => fingerprint)));
  const oldKeys = new Map(before.policy.keys.map((key) => [key.fingerprint, key]));
  const keys = after.policy.keys
    .filter(({ fingerprint }) => !seen.has(fingerprint))
    .flatMap((key) => {
      const old = oldKeys.get(key.fingerprint);
      return old ? differences(`key ${key.name}`, keyPatterns(old), keyPatterns(key)) : [];
    });
  // Where access changes nobody can tell which rule it is by; the lines show that there is something to look at.
  if (changes.length > 0) return keys;
  const oldRules = new Map(before.policy.rules.map((rule) => [rule.id, rule]));
  const rules = after.policy.rules.flatMap((rule) => {
    const old = oldRules.get(rule.id);
    return old ? differences(`rule ${rule.id}`, rulePatterns(old), rulePatterns(rule)) : [];
  });
  return [...keys, ...rules];
}

type Patterns = Readonly<Record<string, string>>;

const keyPatterns = ({ username, filter }: AccessKey): Patterns => ({
  username,
  hostname: filter.hostname ?? "",
});

const rulePatterns = ({ username, sourceIp, filter }: AccessRule): Patterns => ({
  username,
  sourceIp,
  hostname: filter.hostname ?? "",
});

const differences = (title: string, before: Patterns, after: Patterns): string[] =>
  Object.entries(after)
    .filter(([field, pattern]) => before[field] !== pattern)
    .map(
      ([field, pattern]) =>
        `${title}: ${field} changes from ${JSON.stringify(before[field])} to ${JSON.stringify(pattern)}, which no ` +
        "login name, address or device that was looked at tells apart (--login and --from add some)",
    );
