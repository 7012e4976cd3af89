export {
  type FirewallDecision,
  type FirewallRuleFacts,
  firewallDecides,
  type LoginAttempt,
} from "./firewallDecides.ts";
export { type DeviceFacts, type DeviceFilter, filterMatches, type KeyRule, keyAdmits } from "./keyAdmits.ts";
export { compilePattern, PATTERN_CACHE_SIZE, type Pattern, PatternError } from "./pattern.ts";
