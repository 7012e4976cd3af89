import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { inspect } from "node:util";
import { Access, type AccessDomain } from "@gatehouse-access/sdk/policy";
import type { NamespaceState } from "../estate/namespaceState.ts";
import { matchers } from "./matchers.ts";
import { endedWithin, loadPolicyFile, policyTestFiles, TimeLimitError } from "./policyFiles.ts";
import type { PolicyFailure, PolicyTestReport, PolicyTestResult, PolicyWarning } from "./results.ts";
import { type CalledMatcher, type DeclaredTest, type MatcherName, running } from "./written/running.ts";
import type { PolicySubjects } from "./written/types.ts";

/** What policy tests are about: a namespace as it is, or as a change will leave it. */
export interface PolicyTestFacts extends NamespaceState {
  /** The login names and addresses that `access` is evaluated for, beside those that assertions name. */
  readonly domain: AccessDomain;
}

/**
 * Runs the policy tests beside a program. They are the team's own code, as the program is, and run in this process.
 * A file that cannot be loaded, or declares no test, is a failed test.
 *
 * Why no other test runner runs them: within one process, `run()` of node:test works once (in Node.js 22), and a second
 * run never ends; it ends when nothing is open any more, and so would wait for connections to the service; and it reports
 * the line of our own call of `test()` instead of one of the policy file. Vitest runs files in workers, compiles them
 * itself, so that enums pass, and brings almost 40 MB.
 * @param folder where Pulumi.yaml is
 * @throws Error when the folder cannot be read
 */
export async function runPolicyTests(folder: string, facts: PolicyTestFacts): Promise<PolicyTestReport> {
  const subjects = subjectsOf(facts);
  const tests: PolicyTestResult[] = [];
  for (const file of await policyTestFiles(folder)) {
    const place = { file, path: resolve(join(folder, file)) };
    const { tests: declared, error } = await loadPolicyFile(place.path);
    if (error !== undefined) {
      const failure = thrown(error, place.path);
      const failed = { ok: false, failures: [failure], warnings: [], durationMs: 0 };
      tests.push({ name: file, file, line: failure.line, ...failed });
    }
    for (const test of declared) tests.push(await runTest(test, place, subjects));
  }
  return { ok: tests.every(({ ok }) => ok), tests };
}

function subjectsOf({ policy, domain, members, apiKeys, unreadable }: PolicyTestFacts): PolicySubjects {
  let access: Access | undefined;
  const known = <T>(list: readonly T[] | undefined, reason: string): readonly T[] => {
    if (list) return list;
    throw new Error(reason);
  };
  return {
    policy,
    domain,
    get access() {
      access ??= new Access(policy, domain);
      return access;
    },
    get members() {
      return known(members, unreadable.members ?? "members could not be read");
    },
    get apiKeys() {
      return known(apiKeys, unreadable.apiKeys ?? "API keys could not be read");
    },
  };
}

interface TestPlace {
  readonly path: string;
  /** The file as the report names it. */
  readonly file: string;
}

/** Runs a test until it ends, or its time is over. */
async function runTest(
  { name, body, timeLimit, stack }: DeclaredTest,
  { path, file }: TestPlace,
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
    if (ended) throw new Error(`${assertion}: its test has ended; a test must await what it waits for`);
    asserted = true;
    const place = { assertion, line: lineIn(called.stack, path) ?? line };
    try {
      const judgement = matchers[matcher](subject, args, negated);
      const { holds, message, counterexamples = [], cases = 0, lookedAt, vacuous } = judgement;
      if (holds === negated) {
        failures.push({ ...place, message, counterexamples, cases, ...(lookedAt && { lookedAt }) });
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
    if (!asserted) warnings.push({ message: "it asserts nothing by expect()", line });
  } catch (error) {
    failures.push(thrown(error, path, line));
  }
  ended = true;
  const durationMs = Math.round(performance.now() - started);
  return { name, file, line, ok: failures.length === 0, failures, warnings, durationMs };
}

/**
 * The failure for an error that a test, or the loading of its file, has thrown.
 * @param path of the file whose line is reported
 * @param otherwise the line where the error has none of the file
 */
function thrown(error: unknown, path: string, otherwise?: number): PolicyFailure {
  const place = { counterexamples: [], cases: 0, line: otherwise };
  if (!(error instanceof Error)) return { ...place, message: `it threw ${inspect(error)}` };
  const { name, message, stack } = error;
  const named = ["Error", TimeLimitError.name].includes(name) ? message : `${name}: ${message}`;
  const line = lineIn(stack, path);
  if (line !== undefined) return { ...place, message: named, line };
  const elsewhere = unparsedPlace(stack);
  return { ...place, message: elsewhere === undefined ? named : `${named} (${elsewhere})` };
}

const SUBJECTS: Record<MatcherName, string> = {
  toAllow: "access",
  onlyFrom: "access",
  exactlyOneOwner: "members",
  everyKeyExpires: "apiKeys",
  toSatisfy: "…",
  toAllSatisfy: "…",
};

/** An assertion as a policy file would have it, on one line. */
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

/** The line of a file that is topmost in a call stack; undefined where the file is not in it. */
function lineIn(stack: string | undefined, file: string): number | undefined {
  // Stacks name modules by their URL, and CommonJS modules and files that cannot be parsed by their path.
  const names = [`${pathToFileURL(file).href}:`, `${file}:`];
  for (const text of (stack ?? "").split("\n")) {
    for (const name of names) {
      const at = text.indexOf(name);
      const line = at < 0 ? Number.NaN : Number.parseInt(text.slice(at + name.length), 10);
      if (line > 0) return line;
    }
  }
  return undefined;
}

/** Path and line of a file that could not be parsed: they stand at the beginning of the stack. */
function unparsedPlace(stack: string | undefined): string | undefined {
  const [head = ""] = (stack ?? "").split("\n");
  return /:[0-9]+$/.test(head) && /^(file:|\/|[A-Z]:\\)/.test(head) ? head : undefined;
}
