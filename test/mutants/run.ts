// `npm run mutants` proves the guards: it breaks one guard at a time, and a test of this guard must fail. The exit code
// is 1 if a test fails without a mutant, if a mutant survives, or if a mutant cannot be applied.
import { parseArgs } from "node:util";
import { type MutantResult, MutantRunner } from "./MutantRunner.ts";
import { type Mutant, mutated, readSource } from "./mutant.ts";
import { mutants } from "./mutants.ts";

const HELP = `Usage: npm run mutants [-- options]

  --only NUMBER|TEXT   run only the mutant with the number, or the mutants whose guard or file contains the text;
                       repeatable
  --verbose            also print the test that each mutant fails`;

/** Number of test runs at the same time. */
const RUNNERS = 2;

type Numbered = Mutant & { readonly number: number };

function readOptions(): { readonly chosen: readonly Numbered[]; readonly verbose: boolean } {
  try {
    const { values } = parseArgs({
      options: {
        only: { type: "string", multiple: true, default: [] },
        verbose: { type: "boolean", default: false },
      },
    });
    const chosen = mutants
      .map((mutant, index) => ({ ...mutant, number: index + 1 }))
      .filter(
        ({ number, guard, file }) =>
          values.only.length === 0 ||
          values.only.some((only) =>
            /^\d+$/.test(only) ? number === Number(only) : `${guard}\n${file}`.includes(only),
          ),
      );
    if (chosen.length === 0) throw new Error("--only matches no mutant.");
    return { chosen, verbose: values.verbose };
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n\n${HELP}`);
    process.exit(2);
  }
}

/** Runs the tests of the mutants without a mutant, and splits their files between the runners. Returns the failures. */
async function failuresWithoutMutant(
  runners: readonly MutantRunner[],
  chosen: readonly Mutant[],
): Promise<string[]> {
  const whole = new Set(chosen.flatMap(({ test, name }) => (name === undefined ? test : [])));
  const files = [...new Set(chosen.map(({ test }) => test))].sort();
  const names = [...new Set(chosen.flatMap(({ name }) => name ?? []))];
  console.error(`Running the tests of ${files.length} files without a mutant …`);
  const shares = runners.map(async (runner, share) => {
    const own = files.filter((_, index) => index % runners.length === share);
    const failures = await runner.failures(own.filter((file) => whole.has(file)));
    return [
      ...failures,
      ...(await runner.failures(
        own.filter((file) => !whole.has(file)),
        names,
      )),
    ];
  });
  return (await Promise.all(shares)).flat().sort();
}

async function outcomesOf(
  runners: readonly MutantRunner[],
  chosen: readonly Numbered[],
): Promise<Map<number, MutantResult>> {
  const results = new Map<number, MutantResult>();
  const waiting = [...chosen];
  const work = async (runner: MutantRunner) => {
    for (let mutant = waiting.shift(); mutant; mutant = waiting.shift()) {
      results.set(mutant.number, await runner.outcome(mutant));
      process.stderr.write(`\r${results.size} of ${chosen.length} mutants …`);
    }
  };
  await Promise.all(runners.map(work));
  process.stderr.write("\n");
  return results;
}

const { chosen, verbose } = readOptions();
for (const mutant of chosen) mutated(mutant, readSource(mutant.file));

const started = performance.now();
const runners = await Promise.all(Array.from({ length: RUNNERS }, () => MutantRunner.start()));
let isProven = false;
try {
  const failures = await failuresWithoutMutant(runners, chosen);
  if (failures.length > 0) {
    console.error(`Tests fail without a mutant:\n${failures.map((failure) => `  ${failure}`).join("\n")}`);
  } else {
    const results = await outcomesOf(runners, chosen);
    for (const { number, file, guard } of chosen) {
      const { state, seconds, detail } = results.get(number) as MutantResult;
      console.log(`${state.padEnd(8)} ${seconds.toFixed(1).padStart(5)} s  ${number}. ${guard} (${file})`);
      if (verbose || state !== "killed") console.log(`                  ${detail}`);
    }
    const all = [...results.values()];
    const count = (state: MutantResult["state"]) => all.filter((outcome) => outcome.state === state).length;
    const slowest = Math.max(...all.map(({ seconds }) => seconds)).toFixed(1);
    const total = ((performance.now() - started) / 1000).toFixed(0);
    console.log(
      `\n${all.length} mutants: ${count("killed")} killed, ${count("survived")} survived, ${count("broken")} broken. The slowest took ${slowest} s, all took ${total} s.`,
    );
    isProven = count("killed") === all.length;
  }
} finally {
  await Promise.all(runners.map((runner) => runner.close()));
}
// Vitest sets the exit code 1 after a failed test, although each test of a mutant must fail.
process.exitCode = isProven ? 0 : 1;
