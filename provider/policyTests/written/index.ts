export { expect } from "./expect.ts";
export type {
  AccessMatchers,
  ApiKeyFacts,
  ApiKeyMatchers,
  Expectation,
  ListMatchers,
  MemberFacts,
  MemberMatchers,
  ValueMatchers,
} from "./matchers.ts";
export { type PolicyTestOptions, policyTest, TIME_LIMIT } from "./policyTest.ts";
export type { AccessQuery, Decision, DeviceQuery } from "./query.ts";
export type { PolicyApiKey, PolicyMember, PolicySubjects, PolicyTestBody } from "./subjects.ts";
