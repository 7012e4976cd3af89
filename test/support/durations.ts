import { dirname } from "node:path";
import type { Reporter, TestCase, TestModule } from "vitest/node";

const SLOWEST = 20;

const seconds = (milliseconds: number) => `${(milliseconds / 1000).toFixed(1).padStart(8)} s`;

/** Returns the total time of a test file's imports, hooks and tests, in milliseconds. */
function durationOf(module: TestModule): number {
  const { setupDuration, collectDuration, duration } = module.diagnostic();
  return setupDuration + collectDuration + duration;
}

const nameOf = (test: TestCase) => `${test.module.relativeModuleId}: ${test.fullName}`;

/** Prints the test time of each folder, so that increases are visible, and the slowest tests. */
export default class Durations implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const folders = new Map<string, { total: number; tests: number }>();
    const tests: TestCase[] = [];
    for (const module of modules) {
      const folder = `${dirname(module.relativeModuleId)} (${module.project.name})`;
      const all = [...module.children.allTests()].filter((test) => test.result().state !== "skipped");
      // Omits files in which all tests are skipped.
      if (all.length === 0) continue;
      const known = folders.get(folder) ?? { total: 0, tests: 0 };
      folders.set(folder, { total: known.total + durationOf(module), tests: known.tests + all.length });
      tests.push(...all);
    }
    const sum = [...folders.values()].reduce((total, folder) => total + folder.total, 0);
    console.log(`\nTime of the workers, by folder (${seconds(sum).trim()} in all):`);
    for (const [folder, { total, tests }] of [...folders].sort(([, a], [, b]) => b.total - a.total)) {
      console.log(`${seconds(total)}  ${String(tests).padStart(5)} tests  ${folder}`);
    }
    console.log(`\nThe slowest ${SLOWEST} tests:`);
    const timed = tests.map((test) => ({ test, duration: test.diagnostic()?.duration ?? 0 }));
    for (const { test, duration } of timed.sort((a, b) => b.duration - a.duration).slice(0, SLOWEST)) {
      console.log(`${seconds(duration)}  ${nameOf(test)}`);
    }
  }
}
