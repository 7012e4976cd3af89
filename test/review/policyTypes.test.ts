import { expectTypeOf, test } from "vitest";
import {
  expect as expectPolicy,
  type PolicySubjects,
  policyTest,
} from "../../provider/policyTests/api/index.ts";

/** Only checks the types of its argument. The argument is never called, since calls require a policy file. */
const never = (_test: (subjects: PolicySubjects) => void) => {};

test("the types of matchers accept only supported subjects", () => {
  never(({ access, policy, members, apiKeys }) => {
    expectPolicy(access).not.toAllow({
      key: "*",
      device: { tag: "prod", name: "web-*" },
      from: ["10.0.0.0/8"],
    });
    expectPolicy(access).onlyFrom("10.0.0.0/8", { login: "root" });
    expectPolicy(members.filter(({ role }) => role !== "observer")).exactlyOneOwner();
    expectPolicy(apiKeys.filter(({ role }) => role !== "observer")).not.everyKeyExpires({ withinDays: 3 });
    expectPolicy(policy.keys).toAllSatisfy((key) => key.username !== "");
    expectPolicy(members.length).toSatisfy((count) => count > 3, "more than three");
    expectPolicy(access).toAllow({
      where: (decision) => {
        expectTypeOf(decision.rule).not.toBeAny();
        return decision.device.tags.includes("prod");
      },
    });
    // @ts-expect-error a query has no such field
    expectPolicy(access).toAllow({ keys: "ana" });
    // @ts-expect-error a device query is an object
    expectPolicy(access).toAllow({ device: "web-01" });
    // @ts-expect-error the first argument must be the networks
    expectPolicy(access).onlyFrom("10.0.0.0/8", { from: "10.0.0.0/8" });
    // @ts-expect-error toAllow does not accept members
    expectPolicy(members).toAllow({});
    // @ts-expect-error exactlyOneOwner does not accept API keys
    expectPolicy(apiKeys).exactlyOneOwner();
    // @ts-expect-error everyKeyExpires does not accept public keys, which never expire
    expectPolicy(policy.keys).everyKeyExpires();
    // @ts-expect-error a predicate must be synchronous
    expectPolicy(members).toSatisfy(async () => true);
    // @ts-expect-error toAllSatisfy does not accept a number
    expectPolicy(members.length).toAllSatisfy(() => true);
  });
  expectTypeOf(policyTest)
    .parameter(1)
    .toBeCallableWith({} as PolicySubjects);
});
