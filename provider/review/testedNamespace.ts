import { ConfigurationError } from "@gatehouse-access/sdk";
import type { Plan } from "../engine/index.ts";
import { namespacesUsedBy, type OwnResource } from "../namespace/coverage.ts";
import type { NamespaceState } from "../namespace/namespaceState.ts";
import { evaluatedFor, readEach, readNamespace } from "../namespace/readNamespace.ts";
import { withAdoptedNamespaces } from "../plan/adoptedNamespaces.ts";
import { applyPlan } from "../plan/planned/appliedPlan.ts";
import { newNamespaceNotes } from "../plan/planned/notes.ts";
import {
  changesNamespace,
  createdNamespaces,
  namespacesOf,
  onService,
  type PlanNamespaces,
  stepsOf,
  unplacedNotes,
} from "../plan/steps.ts";
import {
  declaredTests,
  declaredUntested,
  loadPolicySuite,
  type PolicySuite,
} from "../policyTests/policySuite.ts";
import type {
  NamespaceName,
  PolicyTestReport,
  PolicyTestResult,
  UntestedNamespace,
} from "../policyTests/results.ts";
import {
  fileFailures,
  liveFacts,
  type PolicyTestFacts,
  runPolicyTests,
} from "../policyTests/runPolicyTests.ts";
import {
  CHANGED,
  namespaceText,
  type RunNamespaces,
  testCoverage,
  usedBy,
} from "../policyTests/testCoverage.ts";
import { invitedAsMembers, membersOf } from "../resources/member/index.ts";
import type { Connection } from "../service/connection.ts";
import { byText } from "../words.ts";
import { actorOf } from "./guards/planProblems.ts";
import { nameOfNamespace, searchNamespace } from "./namespaceSearch.ts";

/** Output of `gatehouse test --json`: the results of the policy tests on the namespaces that they check. */
export interface TestedNamespace extends PolicyTestReport {
  /**
   * Id of the main namespace. Tests without the option `namespaces` check this namespace. Null if there is no main
   * namespace.
   */
  readonly tenant: string | null;
  /** The namespaces on which at least one test ran. */
  readonly namespaces: readonly NamespaceName[];
  /** The namespaces that the policy files declare as untested. */
  readonly untested: readonly UntestedNamespace[];
  /** Sentences about parts that could not be evaluated. The tests do not cover these parts. */
  readonly notEvaluated: readonly string[];
  /** Sentences about other facts that could not be determined. The results of the tests may depend on these facts. */
  readonly unknown: readonly string[];
}

/**
 * Runs the policy tests of a project directory on live namespaces: the main namespace, the namespaces in which the
 * stack has resources, and the namespaces that tests select. If no test checks a namespace of the stack, this namespace
 * is reported as not evaluated.
 * @param own the resources of the stack; an empty list if the stack is not known
 * @throws RequestError if the main namespace cannot be read; ConfigurationError if a test checks the main namespace and
 *   no setting selects the main namespace
 */
export async function testLive(
  connection: Connection,
  folder: string,
  own: readonly OwnResource[] = [],
): Promise<TestedNamespace> {
  const suite = await loadPolicySuite(folder);
  const { tenant: home, unsettled } = await connection.homeIfAny();
  const used = namespacesUsedBy(own);
  const main = home ?? (used.size === 1 ? [...used.keys()][0] : undefined);
  if (main === undefined && unsettled && checksMain(suite)) throw unsettled;
  const evaluated = await namesOf(connection, [...(main === undefined ? [] : [main]), ...used.keys()]);
  const required = evaluated.flatMap((namespace) => {
    const resources = used.get(namespace.tenant);
    return resources === undefined ? [] : [{ ...namespace, reason: usedBy(resources, "stack") }];
  });
  const run = { main, evaluated, required, created: [] };
  return testNamespaces(connection, suite, run, async (tenant) => {
    const facts = await liveFacts(connection, tenant);
    return { facts, name: facts.state.name };
  });
}

/**
 * Runs the policy tests of a project directory on namespaces after a plan: the namespaces of the plan, and the
 * namespaces that tests select. If the plan changes a namespace that no test checks, this namespace is reported as not
 * evaluated.
 * @param plan a preview with values
 * @param notEvaluated parts of the plan that could not be evaluated, as sentences
 * @throws RequestError if the main namespace cannot be read; ConfigurationError if a test checks the main namespace and
 *   no setting selects the main namespace
 */
export async function testPlan(
  connection: Connection,
  folder: string,
  plan: Plan,
  notEvaluated: readonly string[] = [],
): Promise<TestedNamespace> {
  const suite = await loadPolicySuite(folder);
  const planned = await plannedOn(connection, plan);
  const { adopting, home, main, tenants } = planned;
  if (main === undefined && checksMain(suite)) throw noMainNamespace(tenants);
  const evaluated = await namesOf(connection, tenants);
  const required = evaluated
    .filter(({ tenant }) => changesNamespace(adopting, tenant, home))
    .map((namespace) => ({ ...namespace, reason: CHANGED }));
  const run = { main, evaluated, required, created: createdNamespaces(adopting) };
  // Resources with an unknown namespace may be in any namespace, so they are reported once for the whole plan.
  const unplaced = unplacedNotes(adopting);
  const tested = await testNamespaces(connection, suite, run, async (tenant) => {
    const { before, after } = await plannedNamespaceOf(connection, planned, tenant);
    const evaluated = evaluatedFor(before.facts, [before.policy, after.policy]);
    const notEvaluated = after.notEvaluated.filter((sentence) => !unplaced.includes(sentence));
    return { facts: { state: after.with({ notEvaluated }), evaluated }, name: after.name };
  });
  return {
    ...tested,
    notEvaluated: [...notEvaluated, ...planned.notEvaluated, ...unplaced, ...tested.notEvaluated],
    unknown: [...planned.unknown, ...tested.unknown],
  };
}

const checksMain = (suite: PolicySuite): boolean =>
  declaredTests(suite).some(({ namespaces }) => namespaces === undefined);

async function namesOf(connection: Connection, tenants: readonly string[]): Promise<NamespaceName[]> {
  const names: NamespaceName[] = [];
  for (const tenant of new Set(tenants)) names.push(await nameOfNamespace(connection, tenant));
  return names;
}

interface ReadNamespace {
  readonly facts: PolicyTestFacts;
  readonly name: string;
}

/** Runs each test of a suite on each namespace that the test checks. */
async function testNamespaces(
  connection: Connection,
  suite: PolicySuite,
  run: RunNamespaces,
  read: (tenant: string) => Promise<ReadNamespace>,
): Promise<TestedNamespace> {
  const { main } = run;
  const coverage = await testCoverage(suite, run, searchNamespace(connection));
  const scope = [...run.evaluated, ...coverage.elsewhere];
  const tested = scope.filter(({ tenant }) => coverage.isTested(tenant));
  const { results, unreadable } = await readEach(
    tested.map(({ tenant }) => tenant),
    main,
    async (tenant) => ({ tenant, ...(await read(tenant)) }),
  );
  const tests: PolicyTestResult[] = [];
  // A policy file that cannot be loaded is reported only once, with the tests of the first namespace.
  if (results.length === 0) tests.push(...suite.files.flatMap(fileFailures));
  for (const [index, { tenant, name, facts }] of results.entries()) {
    const selection = {
      namespace: { tenant, name },
      reportsFiles: index === 0,
      checks: coverage.checksOn(tenant),
    };
    tests.push(...(await runPolicyTests(suite, facts, selection)).tests);
  }
  const isSole = results.length === 1;
  const sentences = (list: "notEvaluated" | "unknown") => [
    ...new Set(
      results.flatMap(({ name, facts }) =>
        facts.state[list].map((sentence) => (isSole ? sentence : `${name}: ${sentence}`)),
      ),
    ),
  ];
  return {
    ok: tests.every(({ ok }) => ok),
    tests,
    tenant: main ?? null,
    namespaces: results.map(({ tenant, name }) => ({ tenant, name })),
    untested: declaredUntested(suite),
    notEvaluated: [...coverage.notEvaluated, ...unreadable.values(), ...sentences("notEvaluated")],
    unknown: [
      ...sentences("unknown"),
      ...run.evaluated
        .filter(({ tenant }) => tenant === main && !coverage.isTested(tenant))
        .map((namespace) => `no policy test checks ${namespaceText(namespace)}`),
    ],
  };
}

/** A plan on one service, with the namespaces that the plan covers. */
interface PlanOnService extends PlanNamespaces {
  /** The plan, with the ids of adopted namespaces. */
  readonly adopting: Plan;
  /** Sentences about changes on other services. */
  readonly notEvaluated: readonly string[];
  /**
   * Sentences about unchanged resources on other services, and about resources in namespaces that the plan creates.
   */
  readonly unknown: readonly string[];
}

async function plannedOn(connection: Connection, plan: Plan): Promise<PlanOnService> {
  const { plan: local, notEvaluated, unknown } = onService(plan, connection.client.url);
  const adopting = await withAdoptedNamespaces(connection, local);
  return {
    adopting,
    notEvaluated,
    unknown: [...unknown, ...newNamespaceNotes(adopting)],
    ...(await namespacesOf(connection, [adopting])),
  };
}

function noMainNamespace(tenants: readonly string[]): ConfigurationError {
  const which = tenants.length === 0 ? "no existing namespace" : `several namespaces: ${tenants.join(", ")}`;
  return new ConfigurationError(`The plan covers ${which}`, {
    field: ["tenant"],
    remedy: "set GATEHOUSE_TENANT to the id of the namespace to evaluate",
  });
}

async function plannedNamespaceOf(
  connection: Connection,
  { adopting, home = "" }: PlanOnService,
  tenant: string,
): Promise<{ readonly before: NamespaceState; readonly after: NamespaceState }> {
  const before = await readNamespace(connection, tenant);
  const identity = await connection.client.forTenant(tenant).identity();
  const { role: creatorRole } = actorOf(identity, { members: membersOf(before) });
  const { state } = applyPlan(before, adopting, { home, creatorRole });
  const after = state.inOrder().with({
    notEvaluated: [...before.notEvaluated, ...state.notEvaluated.toSorted(byText)],
    unknown: [...before.unknown, ...state.unknown.toSorted(byText)],
  });
  return { before, after };
}

/** A namespace after a plan, with the other namespaces of the plan. */
export interface PlannedNamespace {
  readonly after: NamespaceState;
  /** The number of the plan's resources in each of the other namespaces, by the id of the namespace. */
  readonly others: ReadonlyMap<string, number>;
}

/**
 * Returns a namespace after a plan: the stack's own namespace, or else the only namespace of the plan.
 * @param plan a preview with values
 * @throws RequestError if the namespace cannot be read; ConfigurationError if no setting selects the namespace
 */
export async function plannedNamespace(connection: Connection, plan: Plan): Promise<PlannedNamespace> {
  const planned = await plannedOn(connection, plan);
  const { adopting, home, main, tenants } = planned;
  if (main === undefined) throw noMainNamespace(tenants);
  const { after } = await plannedNamespaceOf(connection, planned, main);
  const others = tenants
    .filter((tenant) => tenant !== main)
    .map((tenant) => [tenant, stepsOf(adopting, tenant, home ?? "").steps.length] as const);
  const notEvaluated = [...planned.notEvaluated, ...after.notEvaluated];
  const unknown = [...planned.unknown, ...after.unknown];
  return { after: invitedAsMembers(after).with({ notEvaluated, unknown }), others: new Map(others) };
}
