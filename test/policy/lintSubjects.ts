import {
  type AccessDevice,
  type AccessKey,
  type AccessRule,
  type EvaluationOptions,
  evaluateAccess,
  type Finding,
  type LintCode,
  type LintOptions,
  lint,
  loginsToEvaluate,
  type NamespacePolicy,
} from "../../sdk/policy/index.ts";

export const device = (name: string, ...tags: string[]): AccessDevice => ({
  uid: `uid of ${name}`,
  name,
  tags,
});

/** A key for root on web-1. */
export const key = (more: Partial<AccessKey> = {}): AccessKey => ({
  fingerprint: `fingerprint of ${more.name ?? "laptop"}`,
  name: "laptop",
  username: "^root$",
  filter: { hostname: "^web-1$" },
  ...more,
});

/** A rule that allows root from one address on web-1. */
export const rule = (id: string, more: Partial<AccessRule> = {}): AccessRule => ({
  id,
  action: "allow",
  active: true,
  priority: 10,
  sourceIp: "^10\\.0\\.0\\.1$",
  username: "^root$",
  filter: { hostname: "^web-1$" },
  ...more,
});

/** The last rule of a policy that denies by default. */
export const denyAll: AccessRule = {
  id: "deny-all",
  action: "deny",
  active: true,
  priority: 0,
  sourceIp: ".*",
  username: ".*",
  filter: { hostname: ".*" },
};

/** A policy without findings: two devices, one key, a rule that allows the key's login, and the rule `denyAll`. */
export const clean: NamespacePolicy = {
  devices: [device("web-1", "prod"), device("db-1", "prod", "db")],
  keys: [key()],
  rules: [rule("office"), denyAll],
};

/** Returns all findings of a policy. Evaluates the logins and addresses of the policy, and those in `options`. */
export function linted(
  policy: Partial<NamespacePolicy>,
  options: LintOptions & { readonly evaluated?: EvaluationOptions } = {},
): Finding[] {
  const whole = { ...clean, ...policy };
  return lint(
    evaluateAccess(whole, loginsToEvaluate([whole], options.evaluated), undefined, options.now),
    options,
  );
}

/** Returns the findings with one code. */
export const found = (code: LintCode, ...args: Parameters<typeof linted>): Finding[] =>
  linted(...args).filter((finding) => finding.rule === code);

/** Codes and object ids of findings, for comparisons. */
export const short = (findings: readonly Finding[]): string[] =>
  findings.map((finding) => `${finding.rule} ${finding.object.id}`);
