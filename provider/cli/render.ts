import type { Access } from "@gatehouse-access/sdk/policy";
import pc from "picocolors";
import {
  type Diagnostic,
  type EngineEvent,
  type FieldChange,
  type Result,
  retainedObjects,
  type Shown,
  STACK_TYPE,
  type Step,
  type StepOp,
  summarize,
  typeName,
  urnName,
  urnType,
} from "../engine/index.ts";
import type { AccessMapMeta } from "../map/accessMapData.ts";
import { displayTime, printable, printableLines, valueJson } from "../words.ts";
import { writeOutput } from "./writeOutput.ts";

export type Colors = ReturnType<typeof pc.createColors>;

const OPERATIONS = {
  create: { sign: "+ ", color: "green", planned: "to create", done: "created", drifted: "changed" },
  update: { sign: "~ ", color: "yellow", planned: "to update", done: "updated", drifted: "changed" },
  replace: { sign: "+-", color: "magenta", planned: "to replace", done: "replaced", drifted: "changed" },
  delete: { sign: "- ", color: "red", planned: "to delete", done: "deleted", drifted: "deleted" },
  import: { sign: "= ", color: "green", planned: "to adopt", done: "adopted", drifted: "changed" },
  same: { sign: "  ", color: "dim", planned: "unchanged", done: "unchanged", drifted: "as in the state" },
} as const satisfies Record<StepOp, object>;

/** Returns the colors for a terminal. Returns no colors for other streams, or if NO_COLOR is set. */
export const colors = ({ isTTY }: { readonly isTTY?: boolean }, { NO_COLOR }: NodeJS.ProcessEnv): Colors =>
  pc.createColors(isTTY === true && !NO_COLOR);

/** Maximum length of a value, in characters. Longer values are shortened, except with `--json`. */
const VALUE_WIDTH = 72;
const LINE_WIDTH = 110;

function value(shown: Shown | undefined): string {
  if (shown === undefined) return "(none)";
  const text = printable(valueJson(shown)).replaceAll(/"\[(unknown|secret)\]"/g, "[$1]");
  return text.length <= VALUE_WIDTH ? text : `${text.slice(0, 44)} … ${text.slice(-24)}`;
}

const title = ({ type, name }: Pick<Step, "type" | "name">) => printable(`${typeName(type)} ${name}`);

function signedTitle(c: Colors, step: Pick<Step, "type" | "name"> & { op: StepOp | "refresh" }): string {
  const { sign, color } = OPERATIONS[step.op === "refresh" ? "same" : step.op];
  return c[color](`${sign} ${title(step)}`);
}

function fieldLine(c: Colors, step: Step, field: FieldChange): string {
  const forced = step.replaceKeys?.includes(field.path.split(".")[0] ?? "") ? c.magenta("  [replaces]") : "";
  const [path, old, now] = [printable(field.path), value(field.old), value(field.new)];
  if (field.outputOnly) return `      ${c.dim(`~ ${path}: ${old} => ${now} (output)`)}`;
  if (field.old === undefined) return `      ${c.green(`+ ${path}: ${now}`)}${forced}`;
  if (field.new === undefined) return `      ${c.red(`- ${path}: ${old}`)}${forced}`;
  return `      ${c.yellow(`~ ${path}: ${old} => ${now}`)}${forced}`;
}

/**
 * Returns the lines for one resource and its changed fields. A deletion or a failed step has no lines for fields. The
 * error of a failed step is printed separately.
 */
function stepLines(c: Colors, step: Step): string[] {
  const failed = step.error === undefined ? "" : c.red("  failed");
  const which = step.op === "replace" ? "the old object" : "the object";
  const stays = step.retained ? `  ${c.yellow(`${which} stays, unmanaged`)}` : "";
  const head = ` ${signedTitle(c, step)}${stays}${failed}`;
  if (step.op === "delete" || step.op === "same" || step.error !== undefined) return [head];
  const { fields } = step;
  if (step.op === "create") {
    const text = fields.map((field) => `${printable(field.path)}: ${value(field.new)}`).join("  ");
    if (title(step).length + text.length <= LINE_WIDTH) return [`${head}  ${c.dim(text)}`.trimEnd()];
  }
  return [head, ...fields.map((field) => fieldLine(c, step, field))];
}

/** Returns true for an error of a resource or of the program. The command prints these errors at its end. */
export const isPrintedAtEnd = ({ severity, urn }: Diagnostic): boolean =>
  severity === "error" && urn !== undefined;

/**
 * Returns an engine message as text. An error of a resource begins with the type and name of the resource. An error of
 * the program is not changed, because it contains its place in the program. Other messages begin with the URN of the
 * resource.
 */
export function diagnosticText({ severity, message, urn = "" }: Diagnostic): string {
  const isOfProgram = severity === "error" && urn !== "" && urnType(urn) === STACK_TYPE;
  if (urn === "" || isOfProgram) return printableLines(message);
  const of = severity === "error" ? title({ type: urnType(urn), name: urnName(urn) }) : urn;
  return printableLines(`${of}: ${message}`);
}

export function diagnosticLine(c: Colors, diagnostic: Diagnostic): string {
  const { severity } = diagnostic;
  const text = diagnosticText(diagnostic);
  if (severity === "error") return c.red(`error: ${text}`);
  if (severity === "warning") return c.yellow(`warning: ${text}`);
  return text;
}

/** Returns the line for an event of a run, such as a finished step; undefined for events that print no line. */
export function progressLine(c: Colors, event: EngineEvent): string | undefined {
  if (event.kind === "phase")
    return c.bold(
      { preview: "Previewing", update: "Updating", refresh: "Refreshing", destroy: "Destroying" }[
        event.phase
      ],
    );
  if (event.kind === "diagnostic") {
    const isPrinted = event.diagnostic.severity !== "debug" && !isPrintedAtEnd(event.diagnostic);
    return isPrinted ? diagnosticLine(c, event.diagnostic) : undefined;
  }
  if (event.kind === "started" || event.op === "same" || event.type === STACK_TYPE) return undefined;
  // The caller prints the number of objects that were read. If each of these objects had a line, the lines would hide
  // the differences.
  if (event.op === "refresh" && event.error === undefined) return undefined;
  const time = c.dim(`(${(event.ms / 1000).toFixed(1)}s)`);
  return ` ${signedTitle(c, event)} ${time}${event.error === undefined ? "" : ` ${c.red("failed")}`}`;
}

export function resultText(c: Colors, result: Result): string {
  const isDrift = result.command === "drift";
  const lines: string[] = [];
  // The stack's root resource is not an object that the program declares.
  const steps = result.steps.filter(({ type }) => type !== STACK_TYPE);
  const changed = steps.filter((step) => worthShowing(step, result.planned));
  if (changed.length > 0) lines.push(c.bold(isDrift ? "Differences from the state" : "Resources"));
  for (const step of changed) lines.push(...stepLines(c, step));
  const outputs = Object.entries(result.outputs);
  if (outputs.length > 0 && !isDrift) {
    lines.push(c.bold("Outputs"), ...outputs.map(([key, shown]) => `   ${printable(key)}: ${value(shown)}`));
  }
  const retained = retainedObjects(result.steps);
  const claimed = result.left?.length ?? 0;
  const failed = steps.filter(({ error }) => error !== undefined).length;
  const done = summarize(steps);
  const summary = { ...done, delete: done.delete - retained - claimed };
  const tense = isDrift ? "drifted" : result.planned ? "planned" : "done";
  const counts = (Object.keys(OPERATIONS) as StepOp[])
    .filter((op) => summary[op] > 0)
    .map((op) => c[OPERATIONS[op].color](`${summary[op]} ${OPERATIONS[op][tense]}`));
  if (retained > 0) counts.push(c.yellow(`${retained} ${result.planned ? "to keep" : "kept"} unmanaged`));
  if (claimed > 0) counts.push(c.yellow(`${claimed} left to another stack`));
  if (failed > 0) counts.push(c.red(`${failed} failed`));
  lines.push(`${counts.length > 0 ? counts.join(", ") : "No resources"}${summaryTail(c, result)}`);
  return lines.join("\n");
}

/**
 * Returns true if the result lists the step. After a run, the result omits creations and deletions, since the progress
 * output has already listed them.
 */
function worthShowing(step: Step, planned: boolean): boolean {
  if (step.error !== undefined) return true;
  if (step.op === "same") return false;
  return planned || (step.op !== "create" && step.op !== "delete");
}

function summaryTail(c: Colors, result: Result): string {
  const engine = result.engine === "cli" ? "the Pulumi CLI" : "the embedded engine";
  return c.dim(
    ` (${result.project}/${result.stack}, by ${engine}, ${(result.durationMs / 1000).toFixed(1)}s)`,
  );
}

/** Writes a map that shows the access in a namespace before and after a change. */
export async function writeAccessMap(
  stderr: NodeJS.WritableStream,
  file: string,
  {
    before,
    after,
    accessUnknown,
  }: { readonly before: Access; readonly after: Access; readonly accessUnknown: string | undefined },
  meta: Omit<AccessMapMeta, "when">,
): Promise<void> {
  const { accessMapData } = await import("../map/accessMapData.ts");
  const { accessMapHtml, unknownMapHtml } = await import("../map/accessMapHtml.ts");
  const data = accessMapData(before, after, { ...meta, when: displayTime(new Date().toISOString()) });
  const html = accessUnknown === undefined ? accessMapHtml(data) : unknownMapHtml(data, accessUnknown);
  await writeOutput(file, html);
  stderr.write(`Wrote the access map to ${file}\n`);
}
