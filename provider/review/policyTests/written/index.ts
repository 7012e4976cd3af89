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
export {
  type PolicyApiKey,
  type PolicyMember,
  type PolicySubjects,
  type PolicyTestBody,
  type PolicyTestOptions,
  policyTest,
  TIME_LIMIT,
} from "./policyTest.ts";
export type { AccessQuery, Decision, DeviceQuery } from "./query.ts";
