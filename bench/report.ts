import { writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";

/** A report in Markdown. Each line is printed immediately. */
export class Report {
  readonly #lines: string[] = [];

  print(line: string): void {
    this.#lines.push(line);
    console.log(line);
  }

  /** Prints a row of a table. */
  row(...cells: readonly (string | number)[]): void {
    this.print(`| ${cells.join(" | ")} |`);
  }

  /** Writes the printed lines to the file. Has no effect if `file` is undefined. */
  write(file: string | undefined): void {
    if (file !== undefined) writeFileSync(file, `${this.#lines.join("\n")}\n`);
  }
}

export const today = (): string => new Date().toISOString().slice(0, 10);

export const processors = (): string => `${cpus().length} cores (${cpus()[0]?.model.trim() ?? "unknown"})`;

/** The name and version of the Node.js that runs the benchmark. */
export const NODE = `Node ${process.version}`;

/** Formats a number with thousands separators. */
export const grouped = (value: number): string => value.toLocaleString("en");

/** Returns the load of the machine in the last minute. */
export const load = (): string => (loadavg()[0] ?? 0).toFixed(1);
