import { expectTypeOf, test } from "vitest";
import {
  expect as expectPolicy,
  type PolicySubjects,
  policyTest,
} from "../../provider/policyTests/written/index.ts";

/** Does not call its argument, which would need a policy file. The compiler only checks its types. */
const never = (_test: (subjects: PolicySubjects) => void) => {};

test("matchers accept only their subjects", () => {
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
    // @ts-expect-error the networks are the first argument
    expectPolicy(access).onlyFrom("10.0.0.0/8", { from: "10.0.0.0/8" });
    // @ts-expect-error toAllow is not for members
    expectPolicy(members).toAllow({});
    // @ts-expect-error exactlyOneOwner is not for API keys
    expectPolicy(apiKeys).exactlyOneOwner();
    // @ts-expect-error public keys do not expire
    expectPolicy(policy.keys).everyKeyExpires();
    // @ts-expect-error a predicate is synchronous
    expectPolicy(members).toSatisfy(async () => true);
    // @ts-expect-error a number is not a list
    expectPolicy(members.length).toAllSatisfy(() => true);
  });
  expectTypeOf(policyTest)
    .parameter(1)
    .toBeCallableWith({} as PolicySubjects);
});
