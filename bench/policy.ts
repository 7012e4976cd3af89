// Measures the evaluation of a policy: `npm run bench:policy [-- --parts … --rounds N --output FILE]`. Each operation
// runs in a separate process. Each size of a growing policy also runs in a separate process.
import { fileURLToPath } from "node:url";
import type { PolicySize } from "../test/policy/largePolicy.ts";
import { runCommand } from "../test/support/command.ts";
import { names, output, readOptions, wholeNumber } from "./commandLine.ts";
import { type Measured, OPERATIONS, type OperationName, type Task } from "./policyOperations.ts";
import { grouped, load, NODE, processors, Report, today } from "./report.ts";

/**
 * The fleet on which all operations are measured. Each other fleet differs from this fleet in one number, such as the
 * number of keys.
 */
const FLEET: PolicySize = { devices: 10_000, keys: 1_000, rules: 200, logins: 8, addresses: 8 };

/** The fleet numbers that the benchmark varies, with the values to measure. Only one number varies at a time. */
const GROWTH: Readonly<Record<keyof PolicySize, readonly number[]>> = {
  devices: [1_000, 10_000, 100_000],
  keys: [100, 1_000, 10_000],
  rules: [20, 200, 2_000],
  logins: [2, 8, 32],
  addresses: [2, 8, 32],
};
const FIGURES = Object.keys(GROWTH) as (keyof PolicySize)[];

/** The operations to measure for each fleet size. One process measures all of them. */
const GROWN = ["evaluated", "build", "grants", "changes", "explain"] as const;

const options = readOptions("bench:policy", {
  parts: names(["fleet", ...FIGURES]),
  rounds: wholeNumber("number of runs of each operation; the tables show the medians", 5),
  output,
});
const { rounds } = options;
const report = new Report();

/** Measures operations in a new process, so that the measured memory includes no other benchmark data. */
async function measure(size: PolicySize, operations: readonly OperationName[]): Promise<Measured> {
  const task: Task = { size, rounds, operations };
  const command = fileURLToPath(new URL("./policyOperations.ts", import.meta.url));
  const { code, stdout, stderr } = await runCommand([command, JSON.stringify(task)]);
  if (code !== 0) throw new Error(`Measuring ${JSON.stringify(task)} ended with ${code}: ${stderr}`);
  return JSON.parse(stdout) as Measured;
}

/** Formats milliseconds with three digits, since further digits are not reproducible. */
const ms = (value = Number.NaN) =>
  Number(value.toPrecision(3)).toLocaleString("en", { maximumFractionDigits: 4 });

async function measureFleet(): Promise<void> {
  const { devices, keys, rules, logins, addresses } = FLEET;
  const decisions = devices * keys * logins * addresses;
  report.print(`
## ${grouped(devices)} devices, ${grouped(keys)} keys, ${grouped(rules)} rules, ${logins} logins, ${addresses} addresses: ${grouped(decisions)} decisions

| operation | first ms | ms | core ms | result | peak MB | MB before | heap MB | load |
|---|---:|---:|---:|---|---:|---:|---:|---:|`);
  for (const name of Object.keys(OPERATIONS) as OperationName[]) {
    const { timed, megabytes, policyMegabytes, heapMegabytes } = await measure(FLEET, [name]);
    const { first, median, core, outcome = "" } = timed[name] ?? {};
    const times = [ms(first), ms(median), ms(core)];
    report.row(OPERATIONS[name].title, ...times, outcome, megabytes, policyMegabytes, heapMegabytes, load());
  }
}

async function measureGrowth(figure: keyof PolicySize): Promise<void> {
  report.print(`
## Growth: ${figure} (milliseconds of a core)

| ${figure} | loginsToEvaluate | build | grants | changes | explain, one | uids of the grants | peak MB | MB before | load |
|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|`);
  for (const value of GROWTH[figure]) {
    const { timed, megabytes, policyMegabytes } = await measure({ ...FLEET, [figure]: value }, GROWN);
    const [, uids = ""] = / ([\d,]+) uids/.exec(timed.grants?.outcome ?? "") ?? [];
    const times = GROWN.map((name) => ms(timed[name]?.core));
    report.row(grouped(value), ...times, uids, megabytes, policyMegabytes, load());
  }
}

const machine = [
  today(),
  processors(),
  NODE,
  `medians of ${rounds} runs in one process`,
  "load of the last minute; the benchmark itself adds 1",
];
report.print(`# Cost of evaluating a policy

Written by \`npm run bench:policy -- --output FILE\`; [docs/operate/benchmarks.md](../docs/operate/benchmarks.md) describes the measurements.

${machine.join("; ")}.`);
for (const part of options.parts) await (part === "fleet" ? measureFleet() : measureGrowth(part));
report.write(options.output);
