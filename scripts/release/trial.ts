import { join, relative, sep } from "node:path";
import type { JsonTestResults } from "vitest/node";
import { ROOT } from "./bundle.ts";
import type { Finding } from "./checks.ts";

/** The result of a trial. */
export interface Trial {
  readonly findings: readonly Finding[];
  readonly passed: number;
  /** The tests that were skipped here. */
  readonly untried: readonly string[];
}

const PACKAGING = join("test", "packaging") + sep;

/**
 * Reads the result of a trial from the report of its tests.
 * @param report undefined where Vitest wrote none
 * @param exitCode Vitest's; null where a signal ended it
 */
export function trialOf(report: JsonTestResults | undefined, exitCode: number | null): Trial {
  const ending = `Vitest ended with exit code ${exitCode ?? "none"}`;
  if (!report) return { findings: [{ what: `${ending}, and without a report` }], passed: 0, untried: [] };
  const findings = report.testResults.flatMap(({ name, status, message, assertionResults }): Finding[] => {
    const failed = assertionResults.filter((test) => test.status === "failed");
    const file = relative(ROOT, name);
    if (failed.length > 0) {
      return failed.map(({ fullName, failureMessages }) => ({
        what: `${fullName}: ${failureMessages?.[0]?.split("\n")[0]}`,
      }));
    }
    if (status === "failed") return [{ what: `${file}: ${message.split("\n")[0]}` }];
    if (!file.startsWith(PACKAGING) || assertionResults.some((test) => test.status === "passed")) return [];
    return [{ what: `${file}: none of its tests ran`, isOfTheDay: true }];
  });
  const tests = report.testResults.flatMap(({ assertionResults }) => assertionResults);
  const passed = tests.filter(({ status }) => status === "passed").length;
  if (exitCode !== 0 && findings.every(({ isOfTheDay }) => isOfTheDay)) {
    findings.push({ what: `${ending}, and no test says why` });
  }
  if (passed === 0) findings.push({ what: "no test of the trial passed" });
  const untried = tests.filter(({ status }) => status !== "passed" && status !== "failed");
  return { findings, passed, untried: untried.map(({ fullName }) => fullName) };
}
