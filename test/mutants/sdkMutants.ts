import { type Mutant, mutantsOf } from "./mutant.ts";

/** The guards of the client package: access decisions, required claims, limits, and masked secrets. */
export const sdkMutants: readonly Mutant[] = [
  ...mutantsOf(
    "sdk/policy/decisions.ts",
    ["test/policy/decisions.test.ts", "test/policy/expiryGuards.test.ts"],
    [
      {
        guard: "An invalid pattern of a deny rule denies.",
        find: '=> rule.action === "deny";',
        replace: '=> rule.action === "allow";',
      },
      {
        guard: "An invalid pattern of a key admits no login name.",
        find: "patternFound(key.username, login, false, patterns) &&",
        replace: "patternFound(key.username, login, true, patterns) &&",
      },
      {
        guard: "An inactive rule does not decide.",
        find: "rule.active && !hasExpired(rule, at);",
        replace: "!hasExpired(rule, at);",
      },
      {
        guard: "An expired rule does not decide.",
        find: "rule.active && !hasExpired(rule, at);",
        replace: "rule.active || hasExpired(rule, at);",
      },
      {
        guard: "The rule with the highest priority decides.",
        find: "sort((left, right) => right.priority - left.priority)",
        replace: "sort((left, right) => left.priority - right.priority)",
      },
      {
        guard: "Of rules with the same priority, the newest one decides.",
        find: "return rules.toReversed().sort(",
        replace: "return [...rules].sort(",
      },
    ],
  ),
  ...mutantsOf(
    "sdk/policy/expiry.ts",
    ["test/policy/expiryGuards.test.ts"],
    [
      {
        guard: "A text that is not a time has passed.",
        find: "!(Date.parse(time) > at.getTime());",
        replace: "Date.parse(time) <= at.getTime();",
      },
      {
        guard: "A key of a user who is not an accepted member admits no login.",
        find: 'return owner?.isAccepted && !hasExpired(owner, at) ? undefined : "owner";',
        replace: 'return owner && !hasExpired(owner, at) ? undefined : "owner";',
      },
      {
        guard: "A key of a member whose membership has ended admits no login.",
        find: 'return owner?.isAccepted && !hasExpired(owner, at) ? undefined : "owner";',
        replace: 'return owner?.isAccepted ? undefined : "owner";',
      },
      {
        guard: "A key of a refused type admits no login.",
        find: 'if (key.refusedType !== undefined) return "type";',
        replace: "",
      },
    ],
  ),
  ...mutantsOf(
    "sdk/policy/claimPattern.ts",
    ["test/policy/workload.property.test.ts"],
    [
      {
        guard: "The wildcard * of a required claim matches no slash.",
        find: "const stays = code === SLASH ? stayingAtSlash : staying;",
        replace: "const stays = code === -1 ? stayingAtSlash : staying;",
      },
      {
        guard: "A required claim matches the whole text.",
        find: "if (!text.startsWith(this.#beginning)) return false;",
        replace: "if (text.startsWith(this.#beginning)) return true;",
      },
    ],
  ),
  ...mutantsOf(
    "sdk/policy/workload.ts",
    ["test/policy/workload.property.test.ts", "test/server/features/workloadAttacks.test.ts"],
    [
      {
        guard: "A claim is not read from the prototype.",
        find: "Object.hasOwn(this.#claims, name) ? textsOf(this.#claims[name]) : []",
        replace: "textsOf(this.#claims[name])",
      },
    ],
  ),
  ...mutantsOf(
    "sdk/mask.ts",
    ["test/sdk/mask.test.ts"],
    [
      {
        guard: "Overlapping secrets are masked completely.",
        find: "spansOf(text, secret));\n  if (found",
        replace: "spansOf(text, secret).slice(0, 1));\n  if (found",
      },
      {
        guard: "A secret that is equal to a sentence is masked.",
        find: 'sentence !== "" && !secrets.includes(sentence)',
        replace: 'sentence !== ""',
      },
      {
        guard: "A secret that begins in a sentence and ends after it is masked.",
        find: "if (span.end <= ownEnd) continue;",
        replace: "if (span.start <= ownEnd) continue;",
      },
    ],
  ),
  ...mutantsOf(
    "sdk/contract/trustedWorkloads.ts",
    ["test/server/features/trustedWorkloads.test.ts", "test/server/features/workloadAttacks.test.ts"],
    [
      {
        guard: "A workload does not get the role owner.",
        find: 'role: role.exclude(["owner"])',
        replace: "role: role",
      },
      {
        guard: "Only an administrator writes trusted workloads.",
        find: '  object: "trustedWorkload",\n  minRole: "administrator",',
        replace: '  object: "trustedWorkload",\n  minRole: "operator",',
      },
    ],
  ),
];
