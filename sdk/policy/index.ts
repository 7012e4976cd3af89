export {
  accessModeOf,
  DECIDER_NOUNS,
  deciderOf,
  evaluateAccess,
  isPrincipal,
  subjectFacts,
  subjectPairs,
  subjectsOf,
} from "./access.ts";
export type {
  Access,
  AccessMode,
  Decider,
  DeciderNouns,
  DecidingCounts,
  DecidingObject,
  DecidingPattern,
  Decision,
  Evaluation,
  Noun,
  Reason,
  Share,
  SingleLogin,
  Verdict,
} from "./decider.ts";
export {
  type AccessDevice,
  type AccessKey,
  type AccessQuestion,
  type AccessRule,
  type ConsideredRule,
  type DenyingPart,
  type DeviceFacts,
  type DeviceFilter,
  type EvaluatedLogins,
  type Explanation,
  explain,
  type FirewallDecision,
  type FirewallRuleFacts,
  filterMatches,
  firewallDecides,
  firewallDecision,
  isInForce,
  type KeyCredential,
  type KeyRule,
  keyAdmits,
  type LegacyPolicy,
  type LoginAttempt,
  type LoginDecision,
  loginDecision,
  type Mismatch,
  strongestFirst,
} from "./decisions.ts";
export type { DeviceSet } from "./deviceSets.ts";
export { areDisjoint } from "./disjoint.ts";
export {
  ANY_ADDRESS,
  ANY_IPV6_ADDRESS,
  ANY_LOGIN,
  DEFAULT_LOGIN,
  type EvaluationOptions,
  loginsToEvaluate,
  otherAddressOf,
  samplesOf,
} from "./evaluatedLogins.ts";
export {
  type AccessMember,
  earlier,
  hasExpired,
  isLaterEnd,
  type KeyLapse,
  type KeyOwner,
  type KeyValidity,
  keyLapse,
} from "./expiry.ts";
export { type AccessChange, accessChanges, type Grant, grantsOf } from "./grants.ts";
export {
  type AccessPolicy,
  type ConsideredPolicy,
  explainIdentity,
  type IdentityExplanation,
  type IdentityQuestion,
  type IdentityRules,
  isLive,
  isSubject,
  type KeyState,
  keyStateOf,
  type Outcome,
  type PolicyMismatch,
  type PolicySubject,
  type Principal,
  type SshIdentity,
} from "./identity.ts";
export {
  type Counterexample,
  type Evidence,
  type Field,
  type Finding,
  type FindingObject,
  type LintCode,
  type LintRule,
  lintRules,
  type Severity,
} from "./lint/finding.ts";
export {
  expiryOf,
  type LintedApiKey,
  type LintedInvitation,
  type LintOptions,
  lint,
  SOON_DAYS,
} from "./lint/lint.ts";
export type { LintedWorkload } from "./lint/workloads.ts";
export { areLoginsOf, EVERY_LOGIN, type LoginNames, loginNamesIn } from "./loginNames.ts";
export type { SubjectPair } from "./modeSwitch.ts";
export type { AccessSubject, NamespacePolicy, SubjectFacts } from "./namespacePolicy.ts";
export { type Network, networkOf, networkText, notANetwork, parseNetwork, readAddress } from "./networks.ts";
export {
  alternativesOf,
  compilePattern,
  literalsOf,
  type Mistaken,
  matchesWhole,
  mistakenFor,
  mistakenText,
  newPattern,
  PATTERN_CACHE_SIZE,
  type Pattern,
  PatternError,
  type PatternSource,
  patternCost,
  patternOf,
  type Subject,
  totalPatternCost,
} from "./pattern.ts";
export { type Claims, TokenClaims, unmatchedClaim } from "./workload.ts";
