import { cpus, loadavg } from "node:os";
import { packageVersion } from "../../provider/packageFile.ts";
import type { Measured, Timing } from "./measure.ts";

const number = (value: number) => value.toLocaleString("en");
const line = (cells: readonly (string | number)[]) => `| ${cells.join(" | ")} |`;

/** Rules on a page of the service's list. */
const PAGE = 100;
/** Requests of a refresh beside the pages: a login, and what it asks first. */
const BESIDE = 5;

/** What bench/TERRAFORM.md begins with: the machine. */
export function head(terraform: string): string {
  const processors = cpus();
  const machine = [
    new Date().toISOString().slice(0, 10),
    `${processors.length} cores (${processors[0]?.model ?? "unknown"})`,
    `Terraform ${terraform}`,
    `provider ${packageVersion()}`,
    `Node ${process.version}`,
    "service on SQLite on the same machine",
  ];
  return `# What Terraform's provider costs

Written by \`npm run bench:terraform -- --write\`. N firewall rules by the installed provider, and N \`terraform_data\` with
the same values by Terraform itself, in turn. Of plans the faster of two counts, the others run once; load is that of the
last minute, the benchmark's own being 1 to 2. For N above 1,000 nothing is applied: the state was written, and the rules
made at the service.

${machine.join("; ")}.

| N | command | Gatehouse s | terraform_data s | ratio | load |
|---:|---|---:|---:|---:|---:|`;
}

/** A line of the table. */
export function row({ size, command, gatehouse, builtin }: Timing): string {
  const [other, ratio] =
    builtin === undefined ? ["", ""] : [builtin.toFixed(2), (gatehouse / builtin).toFixed(2)];
  return line([number(size), command, gatehouse.toFixed(2), other, ratio, (loadavg()[0] ?? 0).toFixed(1)]);
}

/** Everything that goals are set for. */
export interface Results {
  /** Milliseconds. */
  readonly start: number;
  /** By number of resources, the smallest first. */
  readonly sizes: ReadonlyMap<number, Measured>;
}

/** The goals, and what came of them. */
export function goals({ start, sizes }: Results): string {
  const all = [...sizes];
  const lines = [
    goal("start of the provider, median of 5", `${Math.round(start)} ms`, "at most 500 ms", start <= 500),
    ...marginal(all),
    ...all.flatMap(([size, { timings }]) => apply(size, timings)),
    ...all.slice(-1).map(([size, { requests }]) => refresh(size, requests)),
  ];
  return `
## Goals

| what | measured | goal | met |
|---|---:|---:|---|
${lines.join("\n")}`;
}

const goal = (what: string, measured: string, limit: string, isMet: boolean) =>
  line([what, measured, limit, isMet ? "yes" : "no"]);

const timingOf = (timings: readonly Timing[], command: Timing["command"]) =>
  timings.find((timing) => timing.command === command);

/** What one resource more costs in a plan that changes nothing. */
function marginal(all: readonly (readonly [number, Measured])[]): string[] {
  const [first, last] = [all[0], all.at(-1)];
  if (!first || !last || first === last) return [];
  const [few, many] = [first, last].map(([, { timings }]) => timingOf(timings, "plan (no-op)"));
  if (few?.builtin === undefined || many?.builtin === undefined) return [];
  const each = (from: number, to: number) => ((to - from) * 1000) / (last[0] - first[0]);
  const own = each(few.gatehouse, many.gatehouse);
  const other = each(few.builtin, many.builtin);
  const what = `one resource more in a no-op plan, from ${number(first[0])} to ${number(last[0])}`;
  const measured = `${own.toFixed(2)} / ${other.toFixed(2)} ms = ${(own / other).toFixed(2)}`;
  return [goal(what, measured, "ratio at most 2", own / other <= 2)];
}

function apply(size: number, timings: readonly Timing[]): string[] {
  const { gatehouse, builtin } = timingOf(timings, "apply") ?? {};
  if (gatehouse === undefined || builtin === undefined) return [];
  const ratio = gatehouse / builtin;
  return [goal(`apply of ${number(size)}`, ratio.toFixed(2), "ratio at most 1.1", ratio <= 1.1)];
}

function refresh(size: number, requests: ReadonlyMap<string, number>): string {
  const total = [...requests.values()].reduce((sum, count) => sum + count, 0);
  const parts = [...requests].map(([name, count]) => `${count} × ${name}`).join(", ");
  const limit = Math.ceil(size / PAGE) + BESIDE;
  const what = `requests of a no-op plan of ${number(size)} (${parts})`;
  return goal(what, String(total), `pages of ${PAGE}: at most ${limit}`, total <= limit);
}
