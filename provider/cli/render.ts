import pc from "picocolors";
import {
  type Diagnostic,
  type EngineEvent,
  type FieldChange,
  type Result,
  retainedObjects,
  type Shown,
  type Step,
  type StepOp,
  typeName,
  urnName,
  urnType,
} from "../engine/index.ts";
import { printable, printableLines } from "../words.ts";
import type { Output } from "./io.ts";

/** Paints text, or leaves it as it is. */
export type Colours = ReturnType<typeof pc.createColors>;

const SIGNS: Record<StepOp | "refresh", string> = {
  create: "+ ",
  update: "~ ",
  replace: "+-",
  delete: "- ",
  import: "= ",
  same: "  ",
  refresh: "  ",
};

const WORDS: Record<StepOp, [planned: string, done: string]> = {
  create: ["to create", "created"],
  update: ["to update", "updated"],
  replace: ["to replace", "replaced"],
  delete: ["to delete", "deleted"],
  import: ["to adopt", "adopted"],
  same: ["unchanged", "unchanged"],
};

/** Colours for a terminal; none elsewhere or where NO_COLOR is set. */
export function colours(stream: Output, env: NodeJS.ProcessEnv): Colours {
  return pc.createColors(stream.isTTY === true && !env.NO_COLOR);
}

function paint(c: Colours, op: StepOp | "refresh", text: string): string {
  if (op === "create" || op === "import") return c.green(text);
  if (op === "update") return c.yellow(text);
  if (op === "replace") return c.magenta(text);
  if (op === "delete") return c.red(text);
  return c.dim(text);
}

/** Longest value shown whole; `--json` shows all of every value. */
const VALUE_WIDTH = 72;
/** Longest line on which a new resource is shown with its fields. */
const LINE_WIDTH = 110;

function value(shown: Shown | undefined): string {
  if (shown === undefined) return "(none)";
  const text = printable(JSON.stringify(shown)).replaceAll(/"\[(unknown|secret)\]"/g, "[$1]");
  return text.length <= VALUE_WIDTH ? text : `${text.slice(0, 44)} … ${text.slice(-24)}`;
}

const title = ({ type, name }: { type: string; name: string }) => printable(`${typeName(type)} ${name}`);

function fieldLine(c: Colours, step: Step, field: FieldChange): string {
  const forced = step.replaceKeys?.includes(field.path.split(".")[0] ?? "") ? c.magenta("  [replaces]") : "";
  if (field.outputOnly)
    return `      ${c.dim(`~ ${printable(field.path)}: ${value(field.old)} => ${value(field.new)} (output)`)}`;
  if (field.old === undefined)
    return `      ${c.green(`+ ${printable(field.path)}: ${value(field.new)}`)}${forced}`;
  if (field.new === undefined)
    return `      ${c.red(`- ${printable(field.path)}: ${value(field.old)}`)}${forced}`;
  return `      ${c.yellow(`~ ${printable(field.path)}: ${value(field.old)} => ${value(field.new)}`)}${forced}`;
}

/** One resource and its changed fields. A deletion shows none, all of it goes; a failure shows its reason. */
function stepLines(c: Colours, step: Step): string[] {
  const failed = step.error === undefined ? "" : c.red(`  failed: ${printableLines(step.error)}`);
  const which = step.op === "replace" ? "the old object" : "the object";
  const stays = step.retained ? `  ${c.yellow(`${which} stays, unmanaged`)}` : "";
  const head = ` ${paint(c, step.op, `${SIGNS[step.op]} ${title(step)}`)}${stays}${failed}`;
  if (step.op === "delete" || step.op === "same" || step.error !== undefined) return [head];
  const { fields } = step;
  if (step.op === "create") {
    const text = fields.map((field) => `${printable(field.path)}: ${value(field.new)}`).join("  ");
    if (title(step).length + text.length <= LINE_WIDTH) return [`${head}  ${c.dim(text)}`.trimEnd()];
  }
  return [head, ...fields.map((field) => fieldLine(c, step, field))];
}

/** A message; an error names the resource as steps do, all else tells its urn, for a flag that wants it. */
function diagnosticLine(c: Colours, { severity, message, urn }: Diagnostic): string {
  const of = !urn
    ? ""
    : severity === "error"
      ? `${title({ type: urnType(urn), name: urnName(urn) })}: `
      : `${urn}: `;
  const text = printableLines(of + message);
  if (severity === "error") return c.red(`error: ${text}`);
  if (severity === "warning") return c.yellow(`warning: ${text}`);
  return text;
}

/** One line for one finished step, while the run goes on; undefined for what needs none. */
export function progressLine(c: Colours, event: EngineEvent): string | undefined {
  if (event.kind === "phase")
    return c.bold(
      { preview: "Previewing", update: "Updating", refresh: "Refreshing", destroy: "Destroying" }[
        event.phase
      ],
    );
  if (event.kind === "diagnostic") {
    return event.diagnostic.severity === "debug" ? undefined : diagnosticLine(c, event.diagnostic);
  }
  if (event.kind === "started" || event.op === "same") return undefined;
  // Reads are counted by whoever shows them: a line for each would hide what was found.
  if (event.op === "refresh" && event.error === undefined) return undefined;
  const sign = paint(c, event.op, `${SIGNS[event.op]} ${title(event)}`);
  const time = c.dim(`(${(event.ms / 1000).toFixed(1)}s)`);
  return event.error === undefined ? ` ${sign} ${time}` : ` ${sign} ${time} ${c.red("failed")}`;
}

/** The whole result as text: changed resources, outputs, counts. */
export function resultText(c: Colours, result: Result): string {
  const lines: string[] = [];
  const changed = result.steps.filter((step) => worthShowing(step, result.planned));
  if (changed.length > 0)
    lines.push(c.bold(result.command === "drift" ? "Differences from the state" : "Resources"));
  for (const step of changed) lines.push(...stepLines(c, step));
  const outputs = Object.entries(result.outputs);
  if (outputs.length > 0 && result.command !== "drift") {
    lines.push(c.bold("Outputs"), ...outputs.map(([key, shown]) => `   ${printable(key)}: ${value(shown)}`));
  }
  const left = retainedObjects(result.steps);
  const summary = { ...result.summary, delete: result.summary.delete - left };
  const tense = result.planned ? 0 : 1;
  const counts = (Object.keys(WORDS) as StepOp[])
    .filter((op) => summary[op] > 0)
    .map((op) =>
      paint(c, op, `${summary[op]} ${result.command === "drift" ? drifted(op) : WORDS[op][tense]}`),
    );
  if (left > 0) counts.push(c.yellow(`${left} ${["to leave unmanaged", "left unmanaged"][tense]}`));
  lines.push(`${counts.length > 0 ? counts.join(", ") : "No resources"}${summaryTail(c, result)}`);
  return lines.join("\n");
}

/** Of what was done, creations and deletions were shown as they went, and hold no difference. */
function worthShowing(step: Step, planned: boolean): boolean {
  if (step.error !== undefined) return true;
  if (step.op === "same") return false;
  return planned || (step.op !== "create" && step.op !== "delete");
}

function drifted(op: StepOp): string {
  return op === "delete" ? "gone" : op === "same" ? "as in the state" : "changed";
}

function summaryTail(c: Colours, result: Result): string {
  const engine = result.engine === "cli" ? "the Pulumi CLI" : "the embedded engine";
  return c.dim(
    ` (${result.project}/${result.stack}, by ${engine}, ${(result.durationMs / 1000).toFixed(1)}s)`,
  );
}
