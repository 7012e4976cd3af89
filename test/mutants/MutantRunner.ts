import { join } from "node:path";
import type { Plugin } from "vite";
import { createVitest, type TestModule, type Vitest } from "vitest/node";
import { type Mutant, mutated, ROOT } from "./mutant.ts";

/** The result of the tests of one mutant. */
export interface MutantResult {
  /**
   * `killed`: a test failed. `survived`: all tests passed. `broken`: the run is no proof, since no test ran or the
   * mutated module was not loaded.
   */
  readonly state: "killed" | "survived" | "broken";
  readonly seconds: number;
  /** The first failed test and the number of failed tests, or the reason why the run is no proof. */
  readonly detail: string;
}

/** Runs tests with mutants. Replaces the text of one module while Vitest loads it, so no file changes. */
export class MutantRunner {
  readonly #vitest: Vitest;
  readonly #mutation: Mutation;

  private constructor(vitest: Vitest, mutation: Mutation) {
    this.#vitest = vitest;
    this.#mutation = mutation;
  }

  static async start(): Promise<MutantRunner> {
    const mutation: Mutation = { mutant: undefined, isLoaded: false };
    const options = {
      root: ROOT,
      config: join(ROOT, "test/mutants/vitest.config.ts"),
      watch: false,
      reporters: [{}],
    };
    const vitest = await createVitest("test", options, { plugins: [mutating(mutation)] });
    return new MutantRunner(vitest, mutation);
  }

  /**
   * Runs test files without a mutant. Returns the failures.
   * @param names the parts of the names of the tests to run; default: all tests
   */
  async failures(files: readonly string[], names: readonly string[] = [""]): Promise<string[]> {
    if (files.length === 0) return [];
    const modules = await this.#run(files, names);
    if (modules.length === 0) return [`Vitest ran none of the test files ${files.join(", ")}`];
    return modules.flatMap((module) => {
      const failed = failedTests(module);
      return failed.length > 0 || module.ok() ? failed : [`${module.relativeModuleId}: ${errorOf(module)}`];
    });
  }

  /** Runs the tests of a mutant. */
  async outcome(mutant: Mutant): Promise<MutantResult> {
    const path = join(ROOT, mutant.file);
    const started = performance.now();
    Object.assign(this.#mutation, { mutant, isLoaded: false });
    this.#vitest.invalidateFile(path);
    try {
      const modules = await this.#run([mutant.test], [mutant.name ?? ""]);
      return {
        seconds: (performance.now() - started) / 1000,
        ...resultOf(modules, this.#mutation.isLoaded),
      };
    } finally {
      this.#mutation.mutant = undefined;
      this.#vitest.invalidateFile(path);
    }
  }

  async #run(files: readonly string[], names: readonly string[]): Promise<readonly TestModule[]> {
    const patterns = names.map((name) => name.replaceAll(/[^\w\s]/g, "\\$&"));
    this.#vitest.setGlobalTestNamePattern(new RegExp(patterns.join("|")));
    const project = this.#vitest.getRootProject();
    const specifications = files.map((file) => project.createSpecification(join(ROOT, file)));
    const { testModules } = await this.#vitest.runTestSpecifications(specifications);
    // The result also contains the modules of earlier runs.
    const paths = new Set(specifications.map(({ moduleId }) => moduleId));
    return testModules.filter(({ moduleId }) => paths.has(moduleId));
  }

  close(): Promise<void> {
    return this.#vitest.close();
  }
}

interface Mutation {
  mutant: Mutant | undefined;
  isLoaded: boolean;
}

const mutating = (mutation: Mutation): Plugin => ({
  name: "mutant",
  enforce: "pre",
  transform(code, id) {
    const { mutant } = mutation;
    if (!mutant || id !== join(ROOT, mutant.file)) return undefined;
    mutation.isLoaded = true;
    return { code: mutated(mutant, code), map: null };
  },
});

const testsOf = (module: TestModule) => [...module.children.allTests()];

const failedTests = (module: TestModule): string[] =>
  testsOf(module)
    .filter((test) => test.result().state === "failed")
    .map((test) => `${module.relativeModuleId}: ${test.fullName}`);

const errorOf = (module: TestModule): string =>
  module.errors()[0]?.message ?? "a hook of the test file failed";

function resultOf(modules: readonly TestModule[], isLoaded: boolean): Pick<MutantResult, "state" | "detail"> {
  if (!isLoaded) return { state: "broken", detail: "the tests do not load the mutated file" };
  const [failed, ...more] = modules.flatMap(failedTests);
  if (failed !== undefined) {
    const ran = modules.flatMap(testsOf).filter((test) => test.result().state !== "skipped");
    return { state: "killed", detail: `${failed} (${more.length + 1} of ${ran.length} tests failed)` };
  }
  const faulty = modules.find((module) => !module.ok());
  if (faulty) return { state: "broken", detail: `${faulty.relativeModuleId}: ${errorOf(faulty)}` };
  const passed = modules.flatMap(testsOf).filter((test) => test.result().state === "passed");
  if (passed.length === 0) return { state: "broken", detail: "no test ran" };
  return { state: "survived", detail: `${passed.length} tests passed` };
}
