import { join, relative, sep } from "node:path";
import { ROOT } from "./bundle.ts";
import type { Finding } from "./checks.ts";

/** What a trial came to. */
export interface Trial {
  readonly findings: readonly Finding[];
  readonly passed: number;
  /** The tests that were skipped here. */
  readonly untried: readonly string[];
}

/** A report of Vitest, as far as it is looked at. */
export interface TestReport {
  readonly testResults: readonly {
    readonly message: string;
    readonly status: string;
    readonly name: string;
    readonly assertionResults: readonly {
      readonly fullName: string;
      readonly status: string;
      readonly failureMessages?: readonly string[];
    }[];
  }[];
}

const PACKAGING = join("test", "packaging") + sep;

/**
 * What the tests of a trial say.
 * @param report undefined where Vitest wrote none
 * @param exitCode Vitest's; null where a signal ended it
 */
export function trialOf(report: TestReport | undefined, exitCode: number | null): Trial {
  const ending = `Vitest ended with exit code ${exitCode ?? "none"}`;
  if (!report) return { findings: [{ what: `${ending}, and without a report` }], passed: 0, untried: [] };
  const files = report.testResults.map((file) => ({ ...file, name: relative(ROOT, file.name) }));
  const tests = files.flatMap(({ assertionResults }) => assertionResults);
  const passed = tests.filter(({ status }) => status === "passed").length;
  const failed = tests.filter(({ status }) => status === "failed");
  const broken = files.filter(
    ({ status, assertionResults }) =>
      status === "failed" && assertionResults.every((test) => test.status !== "failed"),
  );
  const idle = files.filter(
    ({ name, status, assertionResults }) =>
      name.startsWith(PACKAGING) &&
      status !== "failed" &&
      assertionResults.every((test) => test.status !== "passed"),
  );
  const findings: Finding[] = [
    ...failed.map(({ fullName, failureMessages: [why = ""] = [] }) => ({
      what: `${fullName}: ${why.split("\n")[0]}`,
    })),
    ...broken.map(({ name, message }) => ({ what: `${name}: ${message.split("\n")[0]}` })),
    ...idle.map(({ name }) => ({ what: `${name}: none of its tests ran`, isOfTheDay: true })),
  ];
  if (exitCode !== 0 && failed.length + broken.length === 0) {
    findings.push({ what: `${ending}, and no test says why` });
  }
  if (passed === 0) findings.push({ what: "no test of the trial passed" });
  return {
    ...{ findings, passed },
    untried: tests
      .filter(({ status }) => !["passed", "failed"].includes(status))
      .map(({ fullName }) => fullName),
  };
}
