import { tenantId } from "@gatehouse-access/sdk/contract";
import { counted, firstOf } from "../words.ts";
import { ALL_NAMESPACES, type DeclaredTest } from "./api/running.ts";
import { declaredTests, declaredUntested, type PolicySuite } from "./policySuite.ts";
import type { NamespaceName, UntestedNamespace } from "./results.ts";

/** A namespace that policy tests must check, unless a policy file declares the namespace as untested. */
export interface RequiredNamespace extends NamespaceName {
  /** The reason why tests must check the namespace, as a relative clause: `which the plan changes`. */
  readonly reason: string;
}

/** The reason to require a test of a namespace that the plan changes. */
export const CHANGED = "which the plan changes";

/** Returns the reason to require a test of a namespace with resources: `in which 3 resources of the stack are`. */
export const usedBy = (resources: number, owner: "stack" | "plan"): string =>
  `in which ${counted(resources, "resource")} of the ${owner} ${resources === 1 ? "is" : "are"}`;

/** The namespaces of a run. */
export interface RunNamespaces {
  /** Id of the namespace that tests without the option `namespaces` check. Undefined if there is no main namespace. */
  readonly main: string | undefined;
  /** The namespaces that the run evaluates. */
  readonly evaluated: readonly NamespaceName[];
  readonly required: readonly RequiredNamespace[];
  /** Names of the namespaces that the plan creates. A name is undefined if it is not known before the apply. */
  readonly created: readonly (string | undefined)[];
}

/**
 * Finds a namespace that is listed in a test's option `namespaces` but that the run does not evaluate. If the namespace
 * does not exist, returns the reason as a sentence.
 */
export type NamespaceSearch = (declared: string) => Promise<NamespaceName | string>;

/** The namespaces that the tests of a suite check in one run. */
export interface TestCoverage {
  /** Returns a predicate for tests. The predicate returns true if a test checks the namespace with the given id. */
  readonly checksOn: (tenant: string) => (test: DeclaredTest) => boolean;
  /** Returns true if at least one test checks the namespace with the given id. */
  readonly isTested: (tenant: string) => boolean;
  /** Namespaces that tests check, although the run does not evaluate them. */
  readonly elsewhere: readonly NamespaceName[];
  /** Blocking findings as sentences: declared tests that cannot run, and namespaces without a test. */
  readonly notEvaluated: readonly string[];
  /**
   * Notes on untested namespaces, as sentences. These are required or new namespaces that have no test, and that a
   * policy file declares as untested.
   */
  readonly untested: readonly string[];
}

/**
 * Assigns the tests of a suite to namespaces. In a project with policy tests, each required namespace and each new
 * namespace of the plan is tested, declared as untested, or reported as not evaluated.
 */
export async function testCoverage(
  suite: PolicySuite,
  { main, evaluated, required, created }: RunNamespaces,
  search: NamespaceSearch,
): Promise<TestCoverage> {
  const tests = declaredTests(suite);
  const exempt = declaredUntested(suite);
  const tenants = new Map<string, string>();
  const elsewhere = new Map<string, NamespaceName>();
  const notEvaluated: string[] = [];
  const untested: string[] = [];
  const isCreated = (declared: string) =>
    created.some((name) => name !== undefined && isName(declared, name));

  for (const declared of namedBy(tests)) {
    const known = evaluated.find((namespace) => refersTo(declared, namespace));
    const found = known ?? (await search(declared));
    if (typeof found !== "string") {
      tenants.set(declared, found.tenant);
      if (!evaluated.some(({ tenant }) => tenant === found.tenant)) elsewhere.set(found.tenant, found);
    } else if (!isCreated(declared)) {
      const naming = tests.filter(({ namespaces = [] }) => namespaces.includes(declared));
      notEvaluated.push(`${testsText(naming)} did not run in the namespace "${declared}": ${found}`);
    }
  }
  const unassigned = tests.filter(({ namespaces }) => namespaces === undefined);
  if (main === undefined && unassigned.length > 0) {
    notEvaluated.push(`${testsText(unassigned)} did not run: ${NO_MAIN}`);
  }

  const checksOn =
    (tenant: string) =>
    ({ namespaces }: DeclaredTest): boolean =>
      namespaces === undefined
        ? tenant === main
        : namespaces.some((declared) => declared === ALL_NAMESPACES || tenants.get(declared) === tenant);
  const isTested = (tenant: string) => tests.some(checksOn(tenant));

  if (suite.files.length > 0) {
    for (const namespace of required) {
      if (isTested(namespace.tenant)) continue;
      const exemption = exempt.find((one) => refersTo(one.namespace, namespace));
      const text = namespaceText(namespace);
      if (exemption) untested.push(untestedText(text, exemption));
      else
        notEvaluated.push(
          `no policy test checks ${text}, ${namespace.reason}; add "${namespace.name}" to the option namespaces of a policyTest, or declare untested("${namespace.name}", "<reason>")`,
        );
    }
    for (const name of created) {
      const exemption = exempt.find((one) => name !== undefined && isName(one.namespace, name));
      if (exemption) untested.push(untestedText(`the namespace "${name}"`, exemption));
      else if (name === undefined)
        notEvaluated.push(
          "no policy test can check a namespace that the plan creates, whose name is not known before the apply",
        );
      else
        notEvaluated.push(
          `no policy test can check the namespace "${name}" before the plan creates it; declare untested("${name}", "<reason>") until it exists`,
        );
    }
  }
  return { checksOn, isTested, elsewhere: [...elsewhere.values()], notEvaluated, untested };
}

const NO_MAIN =
  "there is no main namespace; set GATEHOUSE_TENANT to the id of the namespace to test, or set the option namespaces of the test";

/** The namespaces that tests name. */
const namedBy = (tests: readonly DeclaredTest[]): ReadonlySet<string> =>
  new Set(tests.flatMap(({ namespaces = [] }) => namespaces).filter((name) => name !== ALL_NAMESPACES));

/**
 * Returns true if a string is the id of a namespace. Such an id never refers to a namespace by name. Otherwise, a
 * namespace could get the tests of a different namespace by using its id as a name.
 */
export const isNamespaceId = (declared: string): boolean => tenantId.safeParse(declared).success;

const isName = (declared: string, name: string): boolean =>
  !isNamespaceId(declared) && declared.toLowerCase() === name.toLowerCase();

const refersTo = (declared: string, { tenant, name }: NamespaceName): boolean =>
  declared === tenant || isName(declared, name);

/** Returns a namespace as part of a sentence: `the namespace prod (3f…)`, or only the id if the name is not known. */
export const namespaceText = ({ tenant, name }: NamespaceName): string =>
  name === tenant ? `the namespace ${tenant}` : `the namespace ${name} (${tenant})`;

const untestedText = (text: string, { reason, file, line }: UntestedNamespace): string =>
  `${text} is declared as untested: ${reason} (${file}${line === undefined ? "" : `:${line}`})`;

const NAMED_MAX = 3;

const testsText = (tests: readonly DeclaredTest[]): string =>
  tests.length > NAMED_MAX
    ? counted(tests.length, "policy test")
    : `the policy ${tests.length === 1 ? "test" : "tests"} ${firstOf(
        tests.map(({ name }) => JSON.stringify(name)),
        NAMED_MAX,
      )}`;
