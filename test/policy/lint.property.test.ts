import fc from "fast-check";
import { expect, test } from "vitest";
import { cidr, hostname, login } from "../../provider/helpers/patterns.ts";
import {
  compilePattern,
  type EvaluatedLogins,
  evaluateAccess,
  type Finding,
  firewallDecides,
  keyAdmits,
  type LintCode,
  lint,
  loginsToEvaluate,
  type NamespacePolicy,
  PatternError,
  samplesOf,
} from "../../sdk/policy/index.ts";
import { rule } from "./lintSubjects.ts";

const usernames = [
  "",
  ".*",
  "^root$",
  "root",
  "^ana$",
  "^(ana|bob)$",
  "ana|bob",
  "^b",
  "(?i)^zoe$",
  "[a-z]+",
  "(",
];
const sourceIps = [
  "",
  ".*",
  "^10\\.",
  "^10\\.0\\.0\\.1$",
  "10.0.0.1",
  "^2001:db8:",
  "\\.7$",
  "(?i)^fe80:",
  "(",
];
const hostnames = ["", ".*", "^web-1$", "web-1", "^web", "-1$", "^db-.*$", "^gone$", "("];
const tags = fc.subarray(["a", "b", "nowhere"]);
const filter = fc.oneof(
  fc.constant({}),
  fc.record({ hostname: fc.constantFrom(...hostnames) }),
  fc.record({ tags }),
);
const policies: fc.Arbitrary<NamespacePolicy> = fc.record({
  devices: fc.subarray(["web-1", "web-10", "db-1"], { minLength: 1 }).chain((names) =>
    fc.tuple(
      ...names.map((name) =>
        fc.record({
          uid: fc.constant(`uid ${name}`),
          name: fc.constant(name),
          tags: fc.subarray(["a", "b"]),
        }),
      ),
    ),
  ),
  keys: fc
    .array(fc.record({ username: fc.constantFrom(...usernames), filter }), { maxLength: 3 })
    .map((keys) => keys.map((key, place) => ({ ...key, fingerprint: `${place}`, name: `key ${place}` }))),
  rules: fc
    .array(
      fc.record({
        action: fc.constantFrom("allow", "deny"),
        active: fc.integer({ min: 0, max: 4 }).map((number) => number > 0),
        priority: fc.integer({ min: 0, max: 3 }),
        sourceIp: fc.constantFrom(...sourceIps),
        username: fc.constantFrom(...usernames),
        filter,
      }),
      { maxLength: 6 },
    )
    .map((rules) => rules.map((facts, place) => rule(`${place}`, facts))),
});

interface Login {
  readonly login: string;
  readonly address: string;
  readonly device: NamespacePolicy["devices"][number];
}

const loginsOf = ({ devices }: NamespacePolicy, { logins, addresses }: EvaluatedLogins): Login[] =>
  devices.flatMap((device) =>
    logins.flatMap((login) => addresses.map((address) => ({ login, address, device }))),
  );

const decide = ({ rules }: Pick<NamespacePolicy, "rules">, { login, address, device }: Login) =>
  firewallDecides(rules, {
    login,
    sourceIp: address,
    deviceName: device.name,
    deviceTags: device.tags,
    at: new Date(),
  });

/** Returns the codes of all findings about a rule or key. */
function codesOf(findings: readonly Finding[], kind: Finding["object"]["kind"], id: string): LintCode[] {
  return findings
    .filter(({ object }) => object.kind === kind && object.id === id)
    .map((finding) => finding.rule);
}

const NEVER = "never-matches";
const WRONG: readonly LintCode[] = ["broken-pattern", "mistaken-pattern"];
const IDLE: readonly LintCode[] = ["unreachable-rule", "redundant-rule", NEVER];

type Claim = (policy: NamespacePolicy, evaluated: EvaluatedLogins, findings: Finding[]) => void;

/** The linter must report a rule as idle exactly if deleting the rule changes no decision. */
const idleRules: Claim = (policy, evaluated, findings) => {
  const logins = loginsOf(policy, evaluated);
  for (const candidate of policy.rules.filter(({ active }) => active)) {
    const without = { rules: policy.rules.filter((other) => other !== candidate) };
    const changes = logins.some((one) => decide(policy, one).allowed !== decide(without, one).allowed);
    const codes = codesOf(findings, "rule", candidate.id);
    const idle = [...new Set(codes.filter((code) => IDLE.includes(code)))];
    const matches = logins.some((one) => decide({ rules: [candidate] }, one).rule === candidate);
    // If a rule matches nothing because of a wrong pattern, the linter reports the pattern instead of the finding that
    // the rule matches nothing.
    const isReported = idle.length === 1 || (!matches && codes.some((code) => WRONG.includes(code)));
    expect([idle.length < 2, isReported]).toEqual([true, !changes]);
  }
};

/**
 * The findings never-matches, unreachable-rule and redundant-rule follow from the logins that match the rule, and from
 * the logins on which the rule decides.
 */
const kindsOfIdleRules: Claim = (policy, evaluated, findings) => {
  const logins = loginsOf(policy, evaluated);
  for (const { rule: code, object, evidence } of findings) {
    if (object.kind !== "rule" || !IDLE.includes(code)) continue;
    const [subject] = policy.rules.filter(({ id }) => id === object.id);
    if (!subject) throw new Error(`no rule ${object.id}`);
    const without = { rules: policy.rules.filter((other) => other !== subject) };
    const matching = logins.filter((one) => decide({ rules: [subject] }, one).rule === subject);
    const deciding = matching.filter((one) => decide(policy, one).rule === subject);
    expect(matching.length > 0).toBe(code !== NEVER);
    expect(deciding.length > 0).toBe(code === "redundant-rule");
    const others = (code === "redundant-rule" ? deciding : matching).map(
      (one) => decide(without, one).rule?.id,
    );
    if (code !== NEVER) {
      expect(new Set(evidence?.rules)).toEqual(new Set(others.filter((id) => id !== undefined)));
    }
  }
};

/** The linter must report a key as idle exactly if its filter matches no device. */
const idleKeys: Claim = (policy, evaluated, findings) => {
  for (const key of policy.keys) {
    const codes = codesOf(findings, "key", key.fingerprint);
    const devices = policy.devices.filter((device) => keyAdmits({ ...key, username: "" }, device, "root"));
    expect(codes.includes(NEVER)).toBe(devices.length === 0 && !codes.includes("broken-pattern"));
    if (codes.includes(NEVER)) {
      const admits = ({ device, login }: Login) => keyAdmits(key, device, login);
      expect(loginsOf(policy, evaluated).some(admits)).toBe(false);
    }
    if (codes.includes("matches-everything")) {
      expect(loginsOf(policy, evaluated).every(({ device, login }) => keyAdmits(key, device, login))).toBe(
        true,
      );
    }
  }
};

/** The linter must report two rules as contradicting exactly if their creation order changes a decision. */
const contradictions: Claim = (policy, evaluated, findings) => {
  const reported = new Set<string>();
  for (const { rule: code, object, evidence } of findings) {
    if (code !== "contradiction") continue;
    const ids = [object.id, ...(evidence?.rules ?? [])];
    const [later, earlier] = ids.map((id) => policy.rules.find((rule) => rule.id === id));
    const { login = "", address = "", device: name } = evidence?.counterexample ?? {};
    const device = policy.devices.find((one) => one.name === name);
    if (!later || !earlier || !device) throw new Error(`no rules ${ids} or no device ${name}`);
    const one = { login, address, device };
    expect(decide(policy, one).rule).toBe(later);
    expect(later.priority).toBe(earlier.priority);
    // If the creation order of these two rules is swapped, the other rule decides, with the opposite result.
    expect(decide({ rules: [later, earlier] }, one)).toEqual({
      allowed: earlier.action === "allow",
      rule: earlier,
    });
    expect(decide({ rules: [earlier, later] }, one)).toEqual({
      allowed: earlier.action === "deny",
      rule: later,
    });
    reported.add(ids.join());
  }
  const reversed = { rules: policy.rules.toReversed() };
  const orderMatters = loginsOf(policy, evaluated).some(
    (one) => decide(policy, one).allowed !== decide(reversed, one).allowed,
  );
  if (orderMatters) expect(reported.size).toBeGreaterThan(0);
  // For each contradicting pair, there is a login on which one of the two rules decides and the other would decide
  // differently.
  const pairs = loginsOf(policy, evaluated).flatMap((one) => {
    const winner = decide(policy, one).rule;
    return policy.rules
      .filter((other) => winner && other.priority === winner.priority && other.action !== winner.action)
      .filter((other) => decide({ rules: [other] }, one).rule === other)
      .map((other) => `${winner?.id},${other.id}`);
  });
  expect(reported).toEqual(new Set(pairs));
};

/** If there is no finding no-default-deny, a rule decides on every login. */
const defaultDeny: Claim = (policy, evaluated, findings) => {
  if (policy.keys.length === 0 || findings.some((finding) => finding.rule === "no-default-deny")) return;
  for (const one of loginsOf(policy, evaluated)) expect(decide(policy, one).rule).not.toBeNull();
};

test("findings agree with the decisions on all evaluated logins and addresses", () => {
  fc.assert(
    fc.property(policies, (policy) => {
      const evaluated = loginsToEvaluate([policy]);
      const findings = lint(evaluateAccess(policy, evaluated));
      for (const holds of [idleRules, kindsOfIdleRules, idleKeys, contradictions, defaultDeny])
        holds(policy, evaluated, findings);
    }),
    { numRuns: 500 },
  );
});

const texts = fc.constantFrom(
  "root",
  "web-1",
  "10.0.0.1",
  "10\\.0\\.",
  "2001:db8::1",
  "[a-z]+",
  "[0-9]{1,3}",
  "(ana|bob)",
  ".*",
  ".",
  "^",
  "$",
  "|",
  "a",
  "\\.",
  "-",
  "(?i)",
  "(",
);
const patterns = fc.array(texts, { minLength: 1, maxLength: 4 }).map((parts) => parts.join(""));

function compiles(pattern: string): boolean {
  try {
    return compilePattern(pattern) !== undefined;
  } catch (error) {
    if (error instanceof PatternError) return false;
    throw error;
  }
}

/** Returns the patterns in the text of a suggestion. The strictest pattern is first. */
function suggestedPatterns(suggestion: string): string[] {
  return suggestion
    .replace(/^Write /, "")
    .replace(/ for all names that it matches now\.$|\.$/, "")
    .split(" for only that name, or ")
    .map((text) => {
      const [, helper, args = ""] = /^(login|hostname|cidr)\((.*)\)$/.exec(text) ?? [];
      const names: string[] = JSON.parse(`[${args}]`);
      if (helper === "login") return login(...names);
      if (helper === "hostname") return hostname(...names);
      return helper === "cidr" ? cidr(...names) : text;
    });
}

test("an unanchored-pattern finding has a matching counterexample and an anchored suggestion", {
  tags: ["long"],
}, () => {
  const one = { uid: "1", name: "web-1", tags: [] };
  fc.assert(
    fc.property(patterns, fc.constantFrom("username", "sourceIp", "filter.hostname"), (pattern, field) => {
      const facts = field === "filter.hostname" ? { filter: { hostname: pattern } } : { [field]: pattern };
      const check = (text: string) => {
        const subject = field === "filter.hostname" ? { filter: { hostname: text } } : { [field]: text };
        const policy = { devices: [one], keys: [], rules: [rule("1", { ...facts, ...subject })] };
        const findings = lint(evaluateAccess(policy, loginsToEvaluate([policy])));
        return findings.find((finding) => finding.rule === "unanchored-pattern" && finding.field === field);
      };
      const finding = check(pattern);
      if (!finding) return;
      const [example = ""] = Object.values<string>({ ...finding.evidence?.counterexample });
      expect(compilePattern(pattern).test(example)).toBe(true);
      const whole = `^(?:${pattern})$`;
      expect(compilePattern(whole).test(example)).toBe(false);
      const suggested = suggestedPatterns(finding.suggestion ?? "");
      expect(suggested.length).toBeGreaterThan(0);
      for (const text of suggested) {
        expect([text, compiles(text)]).toEqual([text, true]);
        expect([text, check(text)]).toEqual([text, undefined]);
        // The suggested pattern matches only texts that the original pattern matches.
        const beyond = samplesOf(text).filter((sample) => !compilePattern(pattern).test(sample));
        expect([text, beyond]).toEqual([text, []]);
      }
    }),
    { numRuns: 1500 },
  );
});
