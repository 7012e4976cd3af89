import { createHash } from "node:crypto";
import { parseJson } from "@gatehouse-access/sdk/json";
import { z } from "zod";
import { EngineError } from "../../engine/index.ts";
import type { Attribute } from "../../terraform/attributes.ts";
import type { PlanJson, ResourceChange } from "./planJson.ts";

/**
 * A summary of a plan, for a comparison with another plan. The summary contains no values, and its digest does not
 * include sensitive values.
 */
const plannedWork = z.strictObject({
  version: z.literal(1),
  /** Digest of the plan, without sensitive values and values that are unknown before the apply. */
  digest: z.string(),
  /** The changes, such as `update gatehouse_public_key.ana`. */
  changes: z.array(z.string()),
});

/** A summary of a plan, as `review --save` writes it. */
export type PlannedWork = z.output<typeof plannedWork>;

/**
 * Summarizes a plan. Plans of the same configuration with the same changes have equal summaries. The summary omits
 * unchanged objects. It also omits fields that only the service changes, such as the last use of a key.
 * @param settings the settings of the provider in the configuration
 * @param attributesOf returns the attributes of a resource type; an empty list for types of other providers
 */
export function workOf(
  plan: PlanJson,
  settings: ReadonlyMap<string, string>,
  attributesOf: (type: string) => readonly Attribute[],
): PlannedWork {
  const done = plan.resource_changes.filter(isDone);
  const resources = done.map(({ change, ...resource }) => {
    const { before_sensitive: beforeMask, after_sensitive: afterMask, ...rest } = change;
    const attributes = attributesOf(resource.type);
    return {
      ...resource,
      ...rest,
      before: masked(lasting(attributes, change.before), beforeMask),
      after: masked(lasting(attributes, change.after), afterMask),
    };
  });
  const outputs = Object.entries(plan.output_changes)
    .filter(([, { actions }]) => actions.join() !== "no-op")
    .map(([name, { before, after, before_sensitive: beforeMask, after_sensitive: afterMask }]) => ({
      name,
      before: masked(before, beforeMask),
      after: masked(after, afterMask),
    }));
  // A plan does not contain values that are not known before the apply. So the digest includes the configuration, which
  // determines these values.
  const all = [resources, outputs, plan.action_invocations, plan.configuration, [...settings].sort()];
  return {
    version: 1,
    digest: createHash("sha256").update(JSON.stringify(all)).digest("hex"),
    changes: done.map(({ change, address }) => `${change.actions.join(" and ")} ${address}`),
  };
}

/** Compares a plan with the reviewed plan. */
export function workDifferences(reviewed: PlannedWork, now: PlannedWork) {
  if (reviewed.digest === now.digest) return [];
  const [was, is] = [new Set(reviewed.changes), new Set(now.changes)];
  const without = (some: Set<string>, others: Set<string>) => [...some].filter((one) => !others.has(one));
  const of = (changes: readonly string[], what: string) =>
    changes.map((object) => ({ in: "program" as const, object, message: `${object}: ${what}` }));
  const differences = [
    ...of(without(was, is), "was reviewed, but is no longer planned"),
    ...of(without(is, was), "was not reviewed"),
  ];
  if (differences.length > 0) return differences;
  return of(["the plan"], "changes the same resources with another configuration or other values");
}

/** Parses a saved summary. @throws EngineError (`plan_file`) if the string is not a file of `review --save` */
export function parseWork(text: string, name: string): PlannedWork {
  try {
    return plannedWork.parse(parseJson(text));
  } catch (cause) {
    const message = `Cannot read ${name}: the file is not a saved review of a Terraform plan. Create the file with: review --terraform --save`;
    throw new EngineError("plan_file", message, { cause });
  }
}

function isDone({ change, previous_address: previous, action_reason: reason }: ResourceChange): boolean {
  // Terraform reads the data sources inside `check` blocks in every plan. These reads are not changes.
  if (reason === "read_because_check_nested") return false;
  return change.actions.join() !== "no-op" || change.importing != null || previous !== undefined;
}

function masked(value: unknown, mask: unknown): unknown {
  if (mask === true) return "(sensitive)";
  if (typeof mask !== "object" || mask === null) return value;
  if (Array.isArray(value)) return value.map((item, index) => masked(item, (mask as unknown[])[index]));
  if (typeof value !== "object" || value === null) return value;
  const masks = mask as Readonly<Record<string, unknown>>;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, masked(inner, masks[name])]));
}

/** Returns the values of a resource without the values that only the service changes. */
function lasting(
  attributes: readonly Attribute[],
  values: ResourceChange["change"]["before"],
): ResourceChange["change"]["before"] {
  const passing = attributes.flatMap((one) =>
    one.role === "output" && (one.field.volatile || one.field.mutable !== undefined) ? [one.name] : [],
  );
  return values && Object.fromEntries(Object.entries(values).filter(([name]) => !passing.includes(name)));
}
