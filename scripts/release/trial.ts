import { join } from "node:path";
import { startVitest, type TestModule } from "vitest/node";
import { ROOT } from "./bundle.ts";
import type { Finding } from "./checks.ts";

/** The result of a trial. A trial installs the release artifacts and runs the packaging tests on them. */
export interface Trial {
  readonly findings: readonly Finding[];
  readonly passed: number;
  /** Names of the skipped tests. */
  readonly untried: readonly string[];
}

/**
 * Runs the packaging tests on the artifacts in a folder. The tests install the artifacts into empty folders and follow
 * the quick start.
 */
export async function tryRelease(out: string): Promise<Trial> {
  process.env.GATEHOUSE_RELEASE = out;
  const options = { root: ROOT, project: "processes", watch: false, reporters: [{}] };
  const vitest = await startVitest("test", ["test/packaging", "test/deploy"], options);
  const trial = trialOf(
    vitest.state.getTestModules(),
    vitest.state.getUnhandledErrors(),
    Number(process.exitCode ?? 0),
  );
  await vitest.close();
  return trial;
}

/**
 * Returns the result of a trial from the test results.
 * @param exitCode the exit code of Vitest. Without it, the trial could not detect that Vitest did not start or failed
 *   at its end
 */
export function trialOf(
  modules: readonly TestModule[],
  unhandled: readonly unknown[],
  exitCode: number,
): Trial {
  const tests = modules.flatMap(({ children }) => [...children.allTests()]);
  const withState = (state: string) => tests.filter((test) => test.result().state === state);
  const passed = withState("passed");
  const failure = (where: string, error?: unknown) => ({
    what: `${where}: ${(error as Error | undefined)?.message.split("\n")[0]}`,
  });
  const broken = modules.flatMap((module) =>
    [module, ...module.children.allSuites()].flatMap((suite) =>
      suite.errors().map((error) => failure(module.relativeModuleId, error)),
    ),
  );
  const idle = modules.filter(
    (module) =>
      module.relativeModuleId.startsWith(join("test", "packaging")) &&
      module.ok() &&
      !passed.some((test) => test.module === module),
  );
  const failed = [
    ...withState("failed").map((test) => failure(test.fullName, test.result().errors?.[0])),
    ...broken,
    ...unhandled.map((error) => failure("Vitest", error)),
  ];
  const unexplained = exitCode !== 0 && failed.length === 0;
  return {
    findings: [
      ...failed,
      ...(unexplained ? [{ what: `Vitest ended with exit code ${exitCode}, but no test failed` }] : []),
      ...idle.map((one) => ({ what: `${one.relativeModuleId}: no test in the file ran`, isOfTheDay: true })),
      ...(passed.length === 0 ? [{ what: "no test of the trial passed" }] : []),
    ],
    passed: passed.length,
    untried: [...withState("skipped"), ...withState("pending")].map(({ fullName }) => fullName),
  };
}
