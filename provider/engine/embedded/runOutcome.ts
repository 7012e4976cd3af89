import type { Step } from "../model.ts";
import type { RunLog } from "../runLog.ts";
import type { Snapshot } from "../state/snapshot.ts";
import type { Props } from "../value.ts";
import { REPORTED } from "./program/startProgram.ts";

/** Why the program ended as it did, in a line. */
export function programFailure(code: number, log: RunLog): string {
  if (code !== REPORTED) return `The program ended with the exit code ${code}.`;
  const last = log.diagnostics.findLast((diagnostic) => diagnostic.severity === "error");
  return last?.message.split("\n").slice(0, 2).join(" ") ?? "The program failed.";
}

/** How many steps failed, in a line; undefined for none. */
export function failedSteps(steps: readonly Step[]): string | undefined {
  const count = steps.filter((step) => step.error !== undefined).length;
  return count === 0 ? undefined : `${count} resource${count === 1 ? "" : "s"} failed.`;
}

/** The outputs of the stack's root resource in the state. */
export function stackOutputs(snapshot: Snapshot): Props {
  const root = snapshot.entries().find(({ state }) => state.type === "pulumi:pulumi:Stack" && !state.delete);
  return root?.state.outputs ?? {};
}

/** Each item once. */
export function unique<T>(items: T[]): T[] {
  const seen = new Map(items.map((item) => [JSON.stringify(item), item]));
  return [...seen.values()];
}
