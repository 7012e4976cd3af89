import { pathToFileURL } from "node:url";
import { inspect } from "node:util";
import { accessMatchers } from "./accessMatchers.ts";
import type { Judge } from "./judgement.ts";
import { listMatchers } from "./listMatchers.ts";
import type { PolicyFailure, PolicyTestResult, PolicyWarning } from "./results.ts";
import { endedWithin, TimeLimitError } from "./timeLimit.ts";
import type { MatcherName } from "./written/matchers.ts";
import { type CalledMatcher, type DeclaredTest, running } from "./written/running.ts";
import type { PolicySubjects } from "./written/subjects.ts";

const judges: Record<MatcherName, Judge> = { ...accessMatchers, ...listMatchers };

/** Where a test is. */
export interface TestPlace {
  /** Absolute path of its file. */
  readonly path: string;
  /** The file as the report names it. */
  readonly file: string;
}

/** Runs a test until it ends, or its time is over. */
export async function runTest(
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
      const judgement = judges[matcher](subject, args, negated);
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
export function thrown(error: unknown, path: string, otherwise?: number): PolicyFailure {
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
