import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { EngineError, type EngineName } from "../../../provider/engine/index.ts";
import { openCrypter, StateCodec, type StoredResource } from "../../../provider/engine/state/crypter.ts";
import { type ResourceState, references } from "../../../provider/engine/state/resourceState.ts";
import { type CloudRecord, type ProgramPlan, Workspace } from "../workspace.ts";
import type { Scenario, ScenarioStep, StepResult } from "./scenario.ts";

/** Runs a scenario with one engine in a new folder. */
export async function observe(scenario: Scenario, engine: EngineName): Promise<StepResult[]> {
  const ws = new Workspace();
  ws.env.CLOUD_COUNTS = "1";
  try {
    const outcomes: StepResult[] = [];
    let before: ProgramPlan = {};
    let plan: ProgramPlan = {};
    for (const step of scenario.steps) {
      if (step.plan) [before, plan] = [plan, step.plan];
      ws.plan(plan);
      step.tamper?.(ws);
      ws.records();
      const result = await run(ws, engine, step);
      const records = ws.records();
      outcomes.push({
        step: step.what,
        ...result,
        calls: callsOf(records),
        order: orderOf(records, relations([before, plan])),
        objects: ws.objects(),
        state: await stateOf(ws),
      });
    }
    return outcomes;
  } finally {
    ws.remove();
  }
}

async function run(
  ws: Workspace,
  engine: EngineName,
  step: ScenarioStep,
): Promise<Pick<StepResult, "ok" | "summary">> {
  const stack = await ws.open({ engine });
  try {
    const result = step.up
      ? await stack.up(step.up)
      : step.refresh
        ? await stack.refresh(step.refresh)
        : await stack.destroy(step.destroy);
    return { ok: true, summary: result.summary };
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    return { ok: false };
  }
}

function callsOf(records: CloudRecord[]): string[] {
  return records
    .filter((record) => "kind" in record)
    .map((record) => JSON.stringify(record))
    .sort();
}

/**
 * Returns a function with two labels as arguments. It returns true if the resource of the first label depends on the
 * resource of the second label, directly or indirectly.
 */
function relations(plans: ProgramPlan[]): (a: string, b: string) => boolean {
  const needs = new Map<string, Set<string>>();
  const labels = new Map<string, Set<string>>();
  for (const { things = [] } of plans) {
    for (const { name, args, from = {}, options = {} } of things) {
      const { dependsOn = [], deletedWith } = options as { dependsOn?: string[]; deletedWith?: string };
      const direct = [...Object.values(from).map(([other]) => other), ...dependsOn];
      if (deletedWith) direct.push(deletedWith);
      needs.set(name, new Set([...(needs.get(name) ?? []), ...direct]));
      const label = String(args?.label ?? name);
      labels.set(label, new Set([...(labels.get(label) ?? []), name]));
    }
  }
  const reaches = (from: string, to: string): boolean =>
    from === to || [...(needs.get(from) ?? [])].some((next) => reaches(next, to));
  return (a, b) =>
    [...(labels.get(a) ?? [])].some((x) =>
      [...(labels.get(b) ?? [])].some((y) => reaches(x, y) || reaches(y, x)),
    );
}

function orderOf(records: CloudRecord[], related: (a: string, b: string) => boolean): string[] {
  const calls = records.flatMap((record, begin) => {
    if (!("kind" in record) || record.kind === "read") return [];
    const end = records.findIndex(
      (other, at) =>
        at > begin && "done" in other && other.done === record.kind && other.label === record.label,
    );
    return [
      { title: `${record.kind} ${record.label}`, label: record.label, begin, end: Math.max(begin, end) },
    ];
  });
  const pairs = calls.flatMap((a) =>
    calls.filter((b) => a.end < b.begin && related(a.label, b.label)).map((b) => `${a.title} < ${b.title}`),
  );
  return pairs.sort();
}

const VOLATILE = ["created", "modified", "sourcePosition", "stackTrace"];

async function stateOf(ws: Workspace): Promise<Record<string, unknown>[]> {
  const file = join(ws.state, ".pulumi/stacks/cloud/test.json");
  // A failed preview creates no stack, except with the Pulumi CLI, which previews only existing stacks.
  if (!existsSync(file)) return [];
  const { latest } = (
    JSON.parse(readFileSync(file, "utf8")) as {
      checkpoint: {
        latest?: { secrets_providers: { state: { salt: string } }; resources?: StoredResource[] };
      };
    }
  ).checkpoint;
  if (!latest?.resources) return [];
  const crypter = await openCrypter(
    ws.env.PULUMI_CONFIG_PASSPHRASE ?? "",
    latest.secrets_providers.state.salt,
  );
  const codec = new StateCodec(crypter);
  const states = latest.resources.map((stored) => codec.decode(stored));
  requireOrder(states);
  return states.map(normal).sort((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b)));
}

/** Checks that each resource of a state follows the resources that it refers to. The CLI makes the same check. */
function requireOrder(states: ResourceState[]): void {
  const seen = new Set<string>();
  for (const state of states) {
    const missing = references(state).filter((urn) => !seen.has(urn));
    if (missing.length > 0) throw new Error(`${state.urn} is in the state before ${missing.join(", ")}`);
    seen.add(state.urn);
  }
}

function normal(state: ResourceState): Record<string, unknown> {
  const { urn, ...rest } = state;
  const out: Record<string, unknown> = { urn };
  for (const key of Object.keys(rest).sort()) {
    const value = rest[key];
    if (VOLATILE.includes(key) || value === undefined || isEmpty(value)) continue;
    out[key] = key === "inputs" || key === "outputs" ? withoutCode(value as Record<string, unknown>) : value;
  }
  // Omits empty dependency lists. In both engines, the last operation determines whether the state contains them.
  const dependencies = Object.entries(state.propertyDependencies ?? {}).filter(([, urns]) => urns.length > 0);
  if (dependencies.length > 0) out.propertyDependencies = Object.fromEntries(dependencies);
  else delete out.propertyDependencies;
  if (state.type.startsWith("pulumi:providers:")) out.id = "<id>";
  if (typeof state.provider === "string") out.provider = state.provider.replace(/::[^:]*$/, "::<id>");
  return sorted(out) as Record<string, unknown>;
}

function isEmpty(value: unknown): boolean {
  return value === false || (typeof value === "object" && value !== null && Object.keys(value).length === 0);
}

function withoutCode({ __provider, ...rest }: Record<string, unknown>): Record<string, unknown> {
  return rest;
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => a.localeCompare(b));
  return Object.fromEntries(entries.map(([key, item]) => [key, sorted(item)]));
}
