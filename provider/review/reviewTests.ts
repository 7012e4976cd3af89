import type { NamespaceState } from "../namespace/namespaceState.ts";
import { readEach } from "../namespace/readNamespace.ts";
import { changesNamespace, createdNamespaces } from "../plan/steps.ts";
import { loadPolicySuite } from "../policyTests/policySuite.ts";
import type { PolicyTestResult } from "../policyTests/results.ts";
import {
  fileFailures,
  liveFacts,
  type PolicyTestFacts,
  runPolicyTests,
} from "../policyTests/runPolicyTests.ts";
import { CHANGED, testCoverage } from "../policyTests/testCoverage.ts";
import type { Connection } from "../service/connection.ts";
import type { LiveNamespaces } from "./liveNamespaces.ts";
import { searchNamespace } from "./namespaceSearch.ts";
import type { TestedElsewhere } from "./report/review.ts";

/** The policy tests of a review. */
export interface ReviewTests {
  /** Returns a function that runs the tests of one namespace of the plan. */
  readonly testsOf: (tenant: string) => (facts: PolicyTestFacts) => Promise<readonly PolicyTestResult[]>;
  /** The results of tests on the current state of namespaces that the plan does not contain. */
  readonly elsewhere: readonly TestedElsewhere[];
  /** Sentences about changed namespaces without a test, and about tests that could not run. They block the change. */
  readonly notEvaluated: readonly string[];
  /** Sentences about changed namespaces that a policy file declares as untested. */
  readonly untested: readonly string[];
}

/**
 * Assigns the policy tests of a project directory to the namespaces of a review. Runs the tests of namespaces that the
 * plan does not contain.
 * @throws Error if the directory cannot be read
 */
export async function reviewTests(
  connection: Connection,
  folder: string,
  { home, main, namespaces, plans }: Pick<LiveNamespaces, "home" | "main" | "namespaces" | "plans">,
): Promise<ReviewTests> {
  const suite = await loadPolicySuite(folder);
  const isChanged = ({ tenant }: NamespaceState) =>
    plans.some((plan) => changesNamespace(plan, tenant, home));
  const required = namespaces
    .filter(isChanged)
    .map(({ tenant, name }) => ({ tenant, name, reason: CHANGED }));
  const [head] = plans;
  const created = head ? createdNamespaces(head) : [];
  const run = { main, evaluated: namespaces, required, created };
  const coverage = await testCoverage(suite, run, searchNamespace(connection));
  // A policy file that cannot be loaded is reported only in this namespace.
  const first = namespaces.find(({ tenant }) => tenant === main) ?? namespaces[0];
  const testsOf = (tenant: string) => async (facts: PolicyTestFacts) => {
    const selection = { checks: coverage.checksOn(tenant), reportsFiles: tenant === first?.tenant };
    return (await runPolicyTests(suite, facts, selection)).tests;
  };
  const notEvaluated = [...coverage.notEvaluated];
  if (!first) notEvaluated.push(...suite.files.flatMap(fileFailures).map(unloadedNote));
  const { results, unreadable } = await readEach(
    coverage.elsewhere.map(({ tenant }) => tenant),
    undefined,
    async (tenant): Promise<TestedElsewhere> => {
      const facts = await liveFacts(connection, tenant);
      const { name } = facts.state;
      notEvaluated.push(...facts.state.notEvaluated.map((sentence) => `${name}: ${sentence}`));
      return { tenant, name, tests: await testsOf(tenant)(facts) };
    },
  );
  return {
    testsOf,
    elsewhere: results,
    untested: coverage.untested,
    notEvaluated: [...notEvaluated, ...unreadable.values()],
  };
}

const unloadedNote = ({ file, failures }: PolicyTestResult): string =>
  `the policy file ${file} could not be loaded: ${failures.map(({ message }) => message).join("; ")}`;
