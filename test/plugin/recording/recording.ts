import { readFileSync, writeFileSync } from "node:fs";
import type { Json, Outcome } from "./messages.ts";

/** One call of the engine, and what came of it. */
export type Exchange = {
  /** Its place among the processes of the command. */
  readonly process: number;
  readonly method: string;
  readonly request: Json;
  /** The place of the last exchange that was begun before this one had its answer; left out: its own. */
  readonly answeredAfter?: number;
} & Outcome;

/** What a command of the CLI was seen to do. */
export interface RecordedCommand {
  readonly command: readonly string[];
  readonly code: number;
  /** The settings in the environment of its plugins. */
  readonly env: Readonly<Record<string, string>>;
  /** The arguments of each plugin that it started. */
  readonly processes: readonly (readonly string[])[];
  /** Of all plugins, as they were begun. */
  readonly exchanges: readonly Exchange[];
}

/** A step of a scenario, as it was. */
export type RecordedStep = RecordedCommand | { readonly byHand: string };

/**
 * What a Pulumi CLI and the plugin said to each other in a scenario. What the scenario's set-up knows by a name is
 * written as «name», and so are secrets; all else is as it was.
 */
export interface Recording {
  /** Version of the CLI. */
  readonly cli: string;
  readonly steps: readonly RecordedStep[];
}

const fileOf = (name: string) => new URL(`../recorded/${name}.json`, import.meta.url);

/** Reads the recording of a scenario. */
export function readRecording(name: string): Recording {
  return JSON.parse(readFileSync(fileOf(name), "utf8")) as Recording;
}

/** Writes it, one line for each exchange. */
export function writeRecording(name: string, { cli, steps }: Recording): void {
  const lines = steps.map((step) => {
    if ("byHand" in step) return JSON.stringify(step);
    const { exchanges, processes, ...rest } = step;
    const list = (members: readonly unknown[]) =>
      `[\n${members.map((member) => `  ${JSON.stringify(member)}`).join(",\n")}\n ]`;
    return `${JSON.stringify(rest).slice(0, -1)},\n "processes": ${list(processes)},\n "exchanges": ${list(exchanges)}}`;
  });
  writeFileSync(fileOf(name), `{"cli": ${JSON.stringify(cli)}, "steps": [\n${lines.join(",\n")}\n]}\n`);
}
