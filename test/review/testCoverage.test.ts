import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { PolicySuite } from "../../provider/policyTests/policySuite.ts";
import type { NamespaceName } from "../../provider/policyTests/results.ts";
import { type RunNamespaces, testCoverage } from "../../provider/policyTests/testCoverage.ts";
import { testPlaces } from "../../provider/review/report/testPlaces.ts";

const idOf = (digit: string) => `${digit.repeat(8)}-2222-4333-8444-555555555555`;
const main: NamespaceName = { tenant: idOf("1"), name: "prod" };
const other: NamespaceName = { tenant: idOf("2"), name: "bravo" };
/** A namespace whose name the credential may not read. */
const unnamed: NamespaceName = { tenant: idOf("3"), name: idOf("3") };
/** A namespace of the service that the plan does not contain. */
const remote: NamespaceName = { tenant: idOf("4"), name: "remote" };
/** A namespace whose name is the id of another namespace. */
const disguised: NamespaceName = { tenant: idOf("5"), name: other.tenant };
const service = [main, other, unnamed, remote, disguised];

const MISSING = "there is no such namespace";
const search = async (declared: string) =>
  service.find(({ tenant, name }) => declared === tenant || (declared === name && name !== other.tenant)) ??
  MISSING;

function suiteOf(
  namespaces: readonly (readonly string[] | undefined)[],
  untested: readonly string[] = [],
): PolicySuite {
  const tests = namespaces.map((names, index) => ({
    name: `test ${index}`,
    body: () => {},
    timeLimit: 1,
    namespaces: names,
    stack: "",
  }));
  const declared = untested.map((namespace) => ({ namespace, reason: "no devices", stack: "" }));
  return {
    files: [{ file: "access.policy.ts", path: "/access.policy.ts", tests, untested: declared }],
  };
}

const runOf = (changed: readonly NamespaceName[], more: Partial<RunNamespaces> = {}): RunNamespaces => ({
  main: main.tenant,
  evaluated: [main, ...changed.filter(({ tenant }) => tenant !== main.tenant)],
  required: changed.map((namespace) => ({ ...namespace, reason: "which the plan changes" })),
  created: [],
  ...more,
});

const tested = async (suite: PolicySuite, run: RunNamespaces) => {
  const { isTested, elsewhere, notEvaluated, untested } = await testCoverage(suite, run, search);
  return {
    tested: service.filter(({ tenant }) => isTested(tenant)).map(({ name }) => name),
    elsewhere: elsewhere.map(({ name }) => name),
    notEvaluated,
    untested,
  };
};

describe("the namespaces that policy tests check", () => {
  test("are the main namespace by default, and a changed namespace without a test is not evaluated", async () => {
    expect(await tested(suiteOf([undefined]), runOf([main]))).toEqual({
      tested: ["prod"],
      elsewhere: [],
      notEvaluated: [],
      untested: [],
    });
    const { notEvaluated } = await tested(suiteOf([undefined]), runOf([main, other]));
    expect(notEvaluated).toEqual([
      `no policy test checks the namespace bravo (${other.tenant}), which the plan changes; add "bravo" to the option namespaces of a policyTest, or declare untested("bravo", "<reason>")`,
    ]);
  });

  test.each([["bravo"], ["BRAVO"], [other.tenant], ["*"]])("include a namespace by %s", async (declared) => {
    expect(await tested(suiteOf([undefined, [declared]]), runOf([other]))).toMatchObject({
      tested: expect.arrayContaining(["prod", "bravo"]),
      notEvaluated: [],
      untested: [],
    });
  });

  test("omit the main namespace if all tests name other namespaces", async () => {
    const { tested: names, notEvaluated } = await tested(suiteOf([["bravo"]]), runOf([main, other]));
    expect([names, notEvaluated]).toEqual([
      ["bravo"],
      [expect.stringMatching(/^no policy test checks the namespace prod /)],
    ]);
  });

  test("do not include a namespace whose name is the id of another namespace", async () => {
    const { tested: names, notEvaluated } = await tested(
      suiteOf([[other.tenant]], [other.tenant]),
      runOf([disguised]),
    );
    expect(names).toEqual(["bravo"]);
    expect(notEvaluated).toEqual([expect.stringContaining(disguised.tenant)]);
  });

  test("include namespaces of the service that the run does not evaluate otherwise", async () => {
    expect(await tested(suiteOf([undefined, ["remote", "prod"]]), runOf([main]))).toEqual({
      tested: ["prod", "remote"],
      elsewhere: ["remote"],
      notEvaluated: [],
      untested: [],
    });
  });

  test("find a namespace by its name if the credential may not read the name in the run", async () => {
    const byName = async () => unnamed;
    const { isTested, elsewhere } = await testCoverage(suiteOf([["hidden"]]), runOf([unnamed]), byName);
    expect([isTested(unnamed.tenant), elsewhere]).toEqual([true, []]);
  });

  test("never silently omit a name that matches no namespace", async () => {
    const { notEvaluated } = await tested(suiteOf([undefined, ["prdo", "prod"]]), runOf([main]));
    expect(notEvaluated).toEqual([
      `the policy test "test 1" did not run in the namespace "prdo": ${MISSING}`,
    ]);
  });

  test("are none without a main namespace, unless tests name namespaces", async () => {
    const run = runOf([other], { main: undefined, evaluated: [other] });
    const { notEvaluated } = await tested(suiteOf([undefined, ["bravo"]]), run);
    expect(notEvaluated).toEqual([
      expect.stringMatching(
        /^the policy test "test 0" did not run: there is no main namespace; set GATEHOUSE/,
      ),
    ]);
  });
});

describe("a namespace that the plan creates", () => {
  test("is not evaluated, with or without a test that names it", async () => {
    for (const namespaces of [undefined, ["trials"]]) {
      const { notEvaluated } = await tested(suiteOf([namespaces]), runOf([], { created: ["trials"] }));
      expect(notEvaluated).toEqual([
        'no policy test can check the namespace "trials" before the plan creates it; declare untested("trials", "<reason>") until it exists',
      ]);
    }
    const { notEvaluated } = await tested(suiteOf([["*"]]), runOf([], { created: [undefined] }));
    expect(notEvaluated).toEqual([expect.stringContaining("whose name is not known before the apply")]);
  });

  test("can be declared as untested", async () => {
    const suite = suiteOf([["trials"]], ["trials"]);
    expect(await tested(suite, runOf([], { created: ["trials"] }))).toMatchObject({
      notEvaluated: [],
      untested: ['the namespace "trials" is declared as untested: no devices (access.policy.ts)'],
    });
  });
});

describe("in a project", () => {
  test("without policy files, no namespace needs a test", async () => {
    expect(await tested({ files: [] }, runOf([main, other], { created: ["trials"] }))).toEqual({
      tested: [],
      elsewhere: [],
      notEvaluated: [],
      untested: [],
    });
  });

  test("with policy files, each changed namespace is tested, untested or not evaluated", async () => {
    const names = ["prod", "bravo", main.tenant, other.tenant, unnamed.tenant, "remote", "prdo", "trials"];
    const declared = fc.uniqueArray(fc.constantFrom(...names, "*"), { minLength: 1, maxLength: 3 });
    const world = fc.record({
      tests: fc.array(fc.option(declared, { nil: undefined }), { maxLength: 3 }),
      untested: fc.uniqueArray(fc.constantFrom(...names), { maxLength: 3 }),
      changed: fc.subarray([main, other, unnamed, disguised]),
      isMainSet: fc.boolean(),
      created: fc.subarray(["trials", undefined]),
    });
    await fc.assert(
      fc.asyncProperty(world, async ({ tests, untested, changed, isMainSet, created }) => {
        const run = runOf(changed, { created, ...(!isMainSet && { main: undefined }) });
        const suite = suiteOf(tests, untested);
        const coverage = await testCoverage(suite, run, search);
        const mentions = (sentences: readonly string[], text: string) =>
          sentences.filter((sentence) => sentence.includes(text)).length;
        for (const { tenant, name } of changed) {
          const text = name === tenant ? `the namespace ${tenant}` : `the namespace ${name} (${tenant})`;
          // Exactly one of the three results applies, and a declared test takes precedence.
          expect(
            [
              coverage.isTested(tenant),
              mentions(coverage.untested, text) === 1,
              mentions(coverage.notEvaluated, `no policy test checks ${text}`) === 1,
            ].filter(Boolean),
          ).toHaveLength(1);
          const isExempt = untested.some(
            (one) => one === tenant || (one === name && tenant !== disguised.tenant),
          );
          if (!coverage.isTested(tenant) && !isExempt) {
            expect(mentions(coverage.notEvaluated, text)).toBe(1);
          }
        }
        for (const name of created) {
          const isExempt = name !== undefined && untested.includes(name);
          const text = name === undefined ? "whose name is not known" : `the namespace "${name}"`;
          expect(mentions(isExempt ? coverage.untested : coverage.notEvaluated, text)).toBeGreaterThan(0);
        }
        for (const [index, namespaces] of tests.entries()) {
          // Each declared test runs, or a sentence reports that it does not run.
          const test = suite.files[0]?.tests[index];
          const isRunning = test && service.some(({ tenant }) => coverage.checksOn(tenant)(test));
          const isReported = mentions(coverage.notEvaluated, `"test ${index}"`) > 0;
          const isLater = created.includes("trials") && namespaces?.includes("trials");
          expect(isRunning || isReported || isLater).toBe(true);
        }
      }),
      { numRuns: 500 },
    );
  });
});

test("reports add the namespace to a test only if the tests ran in several namespaces", () => {
  const [first, second] = [{ namespace: main }, { namespace: other }] as never as Parameters<
    typeof testPlaces
  >[0];
  const placesOf = (...tests: (typeof first)[]) =>
    tests.flatMap((one) => (one ? testPlaces(tests as never)(one) : []));
  expect(placesOf(first, first)).toEqual(["", ""]);
  expect(placesOf(first, second)).toEqual([" in the namespace prod", " in the namespace bravo"]);
});
