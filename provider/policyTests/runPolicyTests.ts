import { inspect } from "node:util";
import { type EvaluatedLogins, evaluateAccess, type NamespacePolicy } from "@gatehouse-access/sdk/policy";
import { queryTime } from "../access/queryTime.ts";
import type { Kind } from "../model/kind.ts";
import type { NamespaceState } from "../namespace/namespaceState.ts";
import { countingInvited, evaluatedFor, readNamespace } from "../namespace/readNamespace.ts";
import { apiKey, apiKeysOf } from "../resources/apiKey/index.ts";
import { member, membersOf } from "../resources/member/index.ts";
import { namespace, settingsOf } from "../resources/namespace/index.ts";
import { trustedWorkload, workloadsOf } from "../resources/trustedWorkload.ts";
import type { Connection } from "../service/connection.ts";
import { type CalledMatcher, type DeclaredTest, type MatcherName, running } from "./api/running.ts";
import type { PolicySubjects, TimedAccess } from "./api/types.ts";
import { matchers } from "./matchers.ts";
import { endedWithin, lineIn, TimeLimitError } from "./policyFiles.ts";
import type { PolicyFile, PolicySuite } from "./policySuite.ts";
import type {
  NamespaceName,
  PolicyFailure,
  PolicyTestReport,
  PolicyTestResult,
  PolicyWarning,
} from "./results.ts";

/** The namespace that policy tests check: the live namespace, or the namespace after a plan. */
export interface PolicyTestFacts {
  readonly state: NamespaceState;
  /**
   * The login names and addresses for which `access` is evaluated. Assertions add the names and addresses of their
   * queries.
   */
  readonly evaluated: EvaluatedLogins;
}

/**
 * Reads a live namespace for policy tests.
 * @throws RequestError if the devices, public keys or firewall rules cannot be read
 */
export async function liveFacts(connection: Connection, tenant: string): Promise<PolicyTestFacts> {
  const state = await readNamespace(connection, tenant);
  return { state, evaluated: evaluatedFor(state.facts, [state.policy]) };
}

/** The part of a suite that runs on one namespace. */
export interface PolicyTestSelection {
  /**
   * Returns true if a test checks the namespace.
   * @default all tests
   */
  readonly checks?: (test: DeclaredTest) => boolean;
  /** The namespace of the results; omitted if the report has only one namespace. */
  readonly namespace?: NamespaceName;
  /**
   * False if a different run reports the files that cannot be loaded.
   * @default true
   */
  readonly reportsFiles?: boolean;
}

/**
 * Runs the policy tests of a program on one namespace. The tests run in this process, since they are as trusted as the
 * program. A file that cannot be loaded, or that declares no test, is treated as a failed test.
 *
 * Other test runners are unsuitable: `run()` of node:test works only once in a process (Node.js 22), waits for open
 * connections, and reports the line of our call to `test()` instead of the line in the policy file. Vitest runs files
 * in workers, compiles enums, and needs almost 40 MB.
 */
export async function runPolicyTests(
  { files }: PolicySuite,
  facts: PolicyTestFacts,
  { checks = () => true, namespace, reportsFiles = true }: PolicyTestSelection = {},
): Promise<PolicyTestReport> {
  const subjects = subjectsOf(facts);
  const tests: PolicyTestResult[] = [];
  for (const one of files) {
    if (reportsFiles) tests.push(...fileFailures(one));
    for (const test of one.tests.filter(checks)) {
      const result = await runTest(test, one.file, one.path, subjects);
      tests.push(namespace ? { ...result, namespace } : result);
    }
  }
  return { ok: tests.every(({ ok }) => ok), tests };
}

/** Returns a failed test if a file could not be loaded. Otherwise, returns an empty list. */
export function fileFailures({ file, path, error }: PolicyFile): PolicyTestResult[] {
  if (error === undefined) return [];
  const failure = thrown(error, path);
  const failed = { ok: false, failures: [failure], warnings: [], durationMs: 0 };
  return [{ name: file, file, line: failure.line, ...failed }];
}

function subjectsOf({ state, evaluated }: PolicyTestFacts): PolicySubjects {
  const { accessUnknown } = state;
  let access: TimedAccess | undefined;
  return {
    get policy() {
      if (accessUnknown !== undefined) throw new Error(accessUnknown);
      return state.policy;
    },
    evaluated,
    get access() {
      access ??= timedAccess(countingInvited(this.policy), evaluated, new Date());
      return access;
    },
    get members() {
      return readObjects(state, member, membersOf(state));
    },
    get apiKeys() {
      return readObjects(state, apiKey, apiKeysOf(state));
    },
    get workloads() {
      return readObjects(state, trustedWorkload, workloadsOf(state));
    },
    get settings() {
      return readObjects(state, namespace, settingsOf(state));
    },
  };
}

/** Returns the objects of a kind. @throws Error if some of the objects could not be read */
function readObjects<T>(
  { unread }: NamespaceState,
  { definition: { name }, reading }: Kind,
  objects: T | undefined,
): T {
  const { what = reading?.what, reason = "" } = unread.get(name) ?? {};
  if (objects === undefined || unread.has(name))
    throw new Error(`${what} could not be read${reason === "" ? "" : `: ${reason}`}`);
  return objects;
}

// An invalid argument is possible, since Node.js does not check the types of a policy file.
const refuseTime = (detail: string) => new TypeError(`access.at(): ${detail}`);

/** Returns the access at a given time, in the form that policy tests use. */
function timedAccess(policy: NamespacePolicy, evaluated: EvaluatedLogins, time: Date): TimedAccess {
  return Object.assign(evaluateAccess(policy, evaluated, undefined, time), {
    at: (other: unknown) => timedAccess(policy, evaluated, queryTime(other, refuseTime)),
  });
}

/** Runs one policy test. @param file path of the policy file for reports */
async function runTest(
  { name, body, timeLimit, stack }: DeclaredTest,
  file: string,
  path: string,
  subjects: PolicySubjects,
): Promise<PolicyTestResult> {
  const started = performance.now();
  const line = lineIn(stack, path);
  const failures: PolicyFailure[] = [];
  const warnings: PolicyWarning[] = [];
  let asserted = false;
  let ended = false;
  const judge = (called: CalledMatcher) => {
    const { matcher, subject, args, negated } = called;
    const assertion = assertionText(called);
    if (ended)
      throw new Error(`${assertion}: its test has already ended; await asynchronous work in the test`);
    asserted = true;
    const place = { assertion, line: lineIn(called.stack, path) ?? line };
    try {
      const judgment = matchers[matcher](subject, args, negated);
      const { holds, message, counterexamples = [], cases = 0, evaluated, vacuous } = judgment;
      if (holds === negated) {
        failures.push({ ...place, message, counterexamples, cases, ...(evaluated && { evaluated }) });
      } else if (vacuous !== undefined) warnings.push({ ...place, message: vacuous });
    } catch (error) {
      failures.push({ assertion, ...thrown(error, path, place.line) });
    }
  };
  try {
    await endedWithin(
      timeLimit,
      running.run(judge, async () => body(subjects)),
    );
    if (!asserted) warnings.push({ message: "the test makes no assertion with expect()", line });
  } catch (error) {
    failures.push(thrown(error, path, line));
  }
  ended = true;
  const durationMs = Math.round(performance.now() - started);
  return { name, file, line, ok: failures.length === 0, failures, warnings, durationMs };
}

/**
 * Returns the failure for an error that a test threw, or for an error from loading its file.
 * @param path the file whose line is reported
 * @param otherwise the line to report if the error's stack does not contain the file
 */
function thrown(error: unknown, path: string, otherwise?: number): PolicyFailure {
  const place = { counterexamples: [], cases: 0, line: otherwise };
  if (!(error instanceof Error)) return { ...place, message: `threw ${inspect(error)}` };
  const { name, message, stack } = error;
  const named = ["Error", TimeLimitError.name].includes(name) ? message : `${name}: ${message}`;
  const line = lineIn(stack, path);
  if (line !== undefined) return { ...place, message: named, line };
  const elsewhere = unparsedPlace(stack);
  return { ...place, message: elsewhere === undefined ? named : `${named} (${elsewhere})` };
}

const SUBJECTS: Record<MatcherName, string> = {
  toAllow: "access",
  toRequireApproval: "access",
  onlyFrom: "access",
  toExpireWithin: "access",
  exactlyOneOwner: "members",
  everyKeyExpires: "apiKeys",
  toSatisfy: "…",
  toAllSatisfy: "…",
};

/** Returns an assertion as code on one line. */
function assertionText({ matcher, negated, args }: CalledMatcher): string {
  return `expect(${SUBJECTS[matcher]})${negated ? ".not" : ""}.${matcher}(${args.map(literal).join(", ")})`;
}

function literal(value: unknown): string {
  if (typeof value === "function")
    return value.name === "" || value.name === "where" ? "() => …" : value.name;
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? String(value);
  const fields = Object.entries(value).map(([name, field]) => `${name}: ${literal(field)}`);
  return fields.length === 0 ? "{}" : `{ ${fields.join(", ")} }`;
}

/** Returns the path and line of a file that could not be parsed. Reads them from the first line of the call stack. */
function unparsedPlace(stack: string | undefined): string | undefined {
  const [head = ""] = (stack ?? "").split("\n");
  return /:[0-9]+$/.test(head) && /^(file:|\/|[A-Z]:\\)/.test(head) ? head : undefined;
}
