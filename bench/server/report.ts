import { cpus } from "node:os";
import { CONNECTIONS } from "./load.ts";
import type { Result } from "./measure.ts";

/** The machine, and the head of the table. */
export function head(seconds: number): string {
  const processors = cpus();
  const machine = [
    new Date().toISOString().slice(0, 10),
    `${processors.length} cores (${processors[0]?.model ?? "unknown"}), load generator included`,
    `Node ${process.version}`,
    `${CONNECTIONS} connections`,
    `${seconds} s each`,
  ];
  return [
    `${machine.join("; ")}.`,
    "",
    "| database | case | req/s | floor then | ratio | p50 ms | p99 ms | RSS MB | SQL statements/request |",
    "|---|---|---:|---:|---:|---:|---:|---:|---:|",
  ].join("\n");
}

const rounded = (rate: number): string =>
  rate.toLocaleString("en", { maximumFractionDigits: rate < 100 ? 1 : 0 });

/**
 * A line of the table.
 * @param floor answers per second of the floor at that time
 */
export function row(database: string, title: string, result: Result, floor: number): string {
  const cells = [
    database,
    title,
    rounded(result.rate),
    rounded(floor),
    (result.rate / floor).toFixed(2),
    result.p50.toFixed(1),
    result.p99.toFixed(1),
    result.megabytes,
    result.statements.toFixed(1),
  ];
  return `| ${cells.join(" | ")} |`;
}
