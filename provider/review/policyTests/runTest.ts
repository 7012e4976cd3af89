import { inspect } from "node:util";
import { assertionText } from "./assertionText.ts";
import { type Finding, judge } from "./judgement.ts";
import type { PolicyFailure, PolicyTestResult, PolicyWarning } from "./results.ts";
import { lineIn, unparsedPlace } from "./sourceLine.ts";
import { endedWithin, TimeLimitError } from "./timeLimit.ts";
import type { PolicySubjects } from "./written/policyTest.ts";
import { type CalledMatcher, type DeclaredTest, running } from "./written/running.ts";

/** Where a test is. */
export interface TestPlace {
  /** Absolute. */
  readonly path: string;
  /** As the report names it. */
  readonly file: string;
}

/** Runs a test to its end, or until its time is over. */
export async function runTest(
  { name, body, timeLimit, stack }: DeclaredTest,
  { path, file }: TestPlace,
  subjects: PolicySubjects,
): Promise<PolicyTestResult> {
  const started = performance.now();
  const line = lineIn(stack, path);
  const notes = new Notes(path, line);
  try {
    await endedWithin(
      timeLimit,
      running.run(
        (called) => notes.judge(called),
        async () => body(subjects),
      ),
    );
    if (notes.asserted === 0) notes.warnings.push({ message: "it asserts nothing by expect()", line });
  } catch (error) {
    notes.failures.push(thrown(error, path, line));
  }
  notes.ended = true;
  const { failures, warnings } = notes;
  const durationMs = Math.round(performance.now() - started);
  return { name, file, line, ok: failures.length === 0, failures, warnings, durationMs };
}

/** What a running test has said so far. */
class Notes {
  readonly failures: PolicyFailure[] = [];
  readonly warnings: PolicyWarning[] = [];
  asserted = 0;
  ended = false;
  readonly #path: string;
  readonly #line: number | undefined;

  constructor(path: string, line: number | undefined) {
    this.#path = path;
    this.#line = line;
  }

  judge(called: CalledMatcher): void {
    if (this.ended) {
      throw new Error(`${assertionText(called)}: its test has ended; a test must await what it waits for`);
    }
    this.asserted += 1;
    const assertion = assertionText(called);
    const line = lineIn(called.stack, this.#path) ?? this.#line;
    try {
      this.#note(judge(called), { assertion, line }, called.negated);
    } catch (error) {
      this.failures.push({ assertion, ...thrown(error, this.#path, line) });
    }
  }

  #note(finding: Finding, place: { assertion: string; line: number | undefined }, negated: boolean): void {
    const { holds, message, counterexamples = [], cases = 0, lookedAt, vacuous } = finding;
    if (holds === negated) {
      this.failures.push({ ...place, message, counterexamples, cases, ...(lookedAt && { lookedAt }) });
    } else if (vacuous !== undefined) {
      this.warnings.push({ ...place, message: vacuous });
    }
  }
}

/** A failure for what a test, or the loading of its file, has thrown. */
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
