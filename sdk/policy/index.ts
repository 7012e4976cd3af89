export { Access, type Share, type Verdict } from "./access.ts";
export type { DeviceSet } from "./deviceSets.ts";
export { areDisjoint } from "./disjoint.ts";
export { ANY_ADDRESS, ANY_LOGIN, DEFAULT_LOGIN, type DomainOptions, domainOf } from "./domain.ts";
export { type ConsideredRule, type Explanation, explain, type Mismatch } from "./explain.ts";
export type {
  AccessDevice,
  AccessDomain,
  AccessKey,
  AccessPolicy,
  AccessQuestion,
  AccessRule,
} from "./facts.ts";
export {
  type FirewallDecision,
  type FirewallRuleFacts,
  firewallDecides,
  type LoginAttempt,
} from "./firewallDecides.ts";
export { type AccessChange, accessChanges, type Grant, grantsOf } from "./grants.ts";
export { type DeviceFacts, type DeviceFilter, filterMatches, type KeyRule, keyAdmits } from "./keyAdmits.ts";
export {
  expiryOf,
  type LintedApiKey,
  type LintedInvitation,
  type LintOptions,
  SOON_DAYS,
} from "./lint/expiry.ts";
export type { Subject } from "./lint/finder.ts";
export type { Counterexample, Evidence, Field, Finding, FindingObject } from "./lint/finding.ts";
export { lint } from "./lint/lint.ts";
export { type LintCode, type LintRule, lintRules, type Severity } from "./lint/lintRules.ts";
export { type Mistaken, mistakenFor, mistakenText } from "./mistaken.ts";
export {
  compilePattern,
  matchesWhole,
  PATTERN_CACHE_SIZE,
  type Pattern,
  PatternError,
  patternOf,
} from "./pattern.ts";
export { samplesOf } from "./samples.ts";
