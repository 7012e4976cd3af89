import { cpus, loadavg } from "node:os";
import type { PolicySize } from "../../test/policy/largePolicy.ts";
import type { Measured, Timed } from "./measure.ts";
import { OPERATIONS, type OperationName } from "./operations.ts";
import { decisionsOf, FLEET } from "./sizes.ts";
import type { TripleLoop } from "./tripleLoop.ts";

const number = (value: number) => value.toLocaleString("en");
const load = () => (loadavg()[0] ?? 0).toFixed(1);
const line = (cells: readonly (string | number)[]) => `| ${cells.join(" | ")} |`;

/** Three digits are more than is reproducible. */
const ms = (value: number) => Number(value.toPrecision(3)).toLocaleString("en", { maximumFractionDigits: 4 });

/** What bench/POLICY.md begins with: the machine. */
export function head(rounds: number): string {
  const processors = cpus();
  const machine = [
    new Date().toISOString().slice(0, 10),
    `${processors.length} cores (${processors[0]?.model ?? "unknown"})`,
    `Node ${process.version}`,
    `medians of ${rounds} runs in one process`,
    "load is that of the last minute, the benchmark's own being 1",
  ];
  return `# What it takes to evaluate a policy

Written by \`npm run bench:policy -- --output FILE\`; [docs/benchmarks.md](../docs/benchmarks.md) says what is measured.

${machine.join("; ")}.`;
}

const described = ({ devices, keys, rules, logins, addresses }: PolicySize) =>
  `${number(devices)} devices, ${number(keys)} keys, ${number(rules)} rules, ${logins} logins, ${addresses} addresses`;

/** Begins the table of the fleet's operations. */
export function fleetHead(): string {
  return `
## ${described(FLEET)}: ${number(decisionsOf(FLEET))} decisions

| operation | first ms | ms | core ms | what came out | MB at most | of it without | heap MB | load |
|---|---:|---:|---:|---|---:|---:|---:|---:|`;
}

/** A line of that table; the process measured nothing else. */
export function fleetRow({ timed: [timed], megabytes, policyMegabytes, heapMegabytes }: Measured): string {
  if (!timed) throw new Error("nothing was timed");
  const { operation, first, median, core, outcome } = timed;
  const times = [first, median, core].map(ms);
  return line([
    OPERATIONS[operation].title,
    ...times,
    outcome,
    megabytes,
    policyMegabytes,
    heapMegabytes,
    load(),
  ]);
}

/** How many times faster the grants are than deciding one by one. */
export function comparison({ sample, admitted, allowed, core, all }: TripleLoop, grants: Timed): string {
  return `
\`keyAdmits\` and \`firewallDecides\`, one by one: ${ms(core)} ms of a core for a sample of ${number(sample)} decisions (${number(admitted)}
admitted by the key, ${number(allowed)} allowed), so ${number(Math.round(all / 1000))} s for all, if all took as long. All grants took
${ms(grants.core)} ms: ${number(Math.round(all / grants.core))} times faster. In the sample the grants say the same, and name the same rule.`;
}

const GROWN: readonly OperationName[] = ["domain", "build", "grants", "changes", "explain"];

/** What is measured of each size, all in one process. */
export const grownOperations = GROWN;

/** Begins the table of one figure that grows. */
export function growthHead(name: string): string {
  return `
## Growth: ${name} (milliseconds of a core)

| ${name} | domainOf | build | grants | changes | explain, one | uids of the grants | MB at most | of it without | load |
|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|`;
}

/** A line of that table: milliseconds of a core. */
export function growthRow(figure: number, { timed, megabytes, policyMegabytes }: Measured): string {
  const times = GROWN.map((name) =>
    ms(timed.find(({ operation }) => operation === name)?.core ?? Number.NaN),
  );
  const [, uids = ""] =
    / ([\d,]+) uids/.exec(timed.find(({ operation }) => operation === "grants")?.outcome ?? "") ?? [];
  return line([number(figure), ...times, uids, megabytes, policyMegabytes, load()]);
}
