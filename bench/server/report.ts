import { cpus } from "node:os";
import type { Arguments } from "./arguments.ts";
import { CONNECTIONS } from "./load.ts";
import type { Result } from "./measure.ts";

/** The whole of bench/RESULTS.md but the lines of the table: the machine, and the table's head. */
export function head({ seconds, rounds }: Pick<Arguments, "seconds" | "rounds">): string {
  const processors = cpus();
  const machine = [
    new Date().toISOString().slice(0, 10),
    `${processors.length} cores (${processors[0]?.model ?? "unknown"}), load generator and database included`,
    `Node ${process.version}`,
    `${CONNECTIONS} connections`,
    `medians of ${rounds} runs of ${seconds} s, in turn with the floor`,
  ];
  return `# What the service can do

Written by \`npm run bench:server -- --output FILE\`; [docs/benchmarks.md](../docs/benchmarks.md) says what is measured.

${machine.join("; ")}.

| database | case | req/s | floor then | ratio | core ms/request | floor core ms | p50 ms | p99 ms | RSS MB | SQL statements/request |
|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|`;
}

const rounded = (rate: number): string =>
  rate.toLocaleString("en", { maximumFractionDigits: rate < 100 ? 1 : 0 });

/** A line of the table. */
export function row(database: string, result: Result): string {
  const cells = [
    database,
    result.title,
    rounded(result.rate),
    rounded(result.floor),
    result.ratio.toFixed(2),
    result.core.toFixed(2),
    result.floorCore.toFixed(2),
    result.p50.toFixed(1),
    result.p99.toFixed(1),
    result.megabytes,
    result.statements.toFixed(1),
  ];
  return `| ${cells.join(" | ")} |`;
}
