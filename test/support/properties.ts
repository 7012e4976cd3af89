import { relative } from "node:path";
import fc from "fast-check";
import { expect } from "vitest";
import { SEED } from "./seed.ts";

/** Says of a random test that failed how it is run again with the same values. */
function report(details: fc.RunDetails<unknown>): void {
  if (!details.failed) return;
  const { currentTestName, testPath } = expect.getState();
  const again =
    details.seed === SEED
      ? `GATEHOUSE_SEED=${SEED} npx vitest run ${relative(process.cwd(), testPath ?? "")} (${currentTestName})`
      : "The test has a seed of its own: every run is like this one.";
  const cause = details.errorInstance;
  throw new Error(`${fc.defaultReportMessage(details)}\n\nTo run it again:\n${again}`, { cause });
}

fc.configureGlobal({ seed: SEED, reporter: report });
