import { relative } from "node:path";
import fc from "fast-check";
import { expect, vi } from "vitest";
import { SEED } from "./seed.ts";

/** Prints how to repeat a failed random test with the same values. */
function report(details: fc.RunDetails<unknown>): void {
  if (!details.failed) return;
  const { currentTestName, testPath } = expect.getState();
  const again =
    details.seed === SEED
      ? `GATEHOUSE_SEED=${SEED} npx vitest run ${relative(process.cwd(), testPath ?? "")} (${currentTestName})`
      : "The test has its own seed: every run repeats this one.";
  const cause = details.errorInstance;
  throw new Error(`${fc.defaultReportMessage(details)}\n\nTo repeat it:\n${again}`, { cause });
}

fc.configureGlobal({ seed: SEED, reporter: report });

/**
 * Time limit of a property test, in milliseconds. A property test ends after a number of runs. On a machine with 15 times
 * as much work as processors, the slowest property test took 190 seconds.
 */
const PROPERTY_TIMEOUT = 600_000;
if (expect.getState().testPath?.endsWith(".property.test.ts"))
  vi.setConfig({ testTimeout: PROPERTY_TIMEOUT });
