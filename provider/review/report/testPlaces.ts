import type { PolicyTestResult } from "../../policyTests/results.ts";

/**
 * Returns a function that adds the namespace to a test in a report: ` in the namespace prod`. The function returns an
 * empty string if all tests ran in one namespace.
 */
export function testPlaces(
  tests: readonly PolicyTestResult[],
): (test: Pick<PolicyTestResult, "namespace">) => string {
  const tenants = new Set(tests.flatMap(({ namespace }) => namespace?.tenant ?? []));
  return ({ namespace }) => (namespace && tenants.size > 1 ? ` in the namespace ${namespace.name}` : "");
}
