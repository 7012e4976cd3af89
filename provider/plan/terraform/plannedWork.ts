import { createHash } from "node:crypto";
import { parseJson } from "@gatehouse-access/sdk/json";
import { z } from "zod";
import { EngineError } from "../../engine/index.ts";
import type { Attribute } from "../../terraform/attributes.ts";
import type { PlanJson, ResourceChange } from "./planJson.ts";

/** What a plan would do, as far as it is kept for a comparison. No value stands in it, and none that is sensitive is behind it. */
const plannedWork = z.strictObject({
  version: z.literal(1),
  /** Of all that the plan would do, but for sensitive values and those that only the apply knows. */
  digest: z.string(),
  /** `update gatehouse_public_key.ana`. */
  changes: z.array(z.string()),
});

export type PlannedWork = z.output<typeof plannedWork>;

/**
 * What a plan would do. Two plans of one configuration have the same, whenever they were made, unless what they would do
 * differs: objects that stay as they are do not count, nor what the service alone changes, such as when a key was used.
 * @param settings what the configuration says of the provider itself
 * @param attributesOf the attributes of a type of resource; none where it is another provider's
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
      ...{ ...resource, ...rest },
      before: masked(lasting(attributes, change.before), beforeMask),
      after: masked(lasting(attributes, change.after), afterMask),
    };
  });
  const outputs = Object.entries(plan.output_changes)
    .filter(([, { actions }]) => actions.join() !== "no-op")
    .map(([name, { before, after, before_sensitive: beforeMask, after_sensitive: afterMask }]) => ({
      ...{ name, before: masked(before, beforeMask), after: masked(after, afterMask) },
    }));
  // Values that only the apply knows are held to the expressions that make them.
  const all = [resources, outputs, plan.action_invocations, plan.configuration, [...settings].sort()];
  return {
    version: 1,
    digest: createHash("sha256").update(JSON.stringify(all)).digest("hex"),
    changes: done.map(({ change, address }) => `${change.actions.join(" and ")} ${address}`),
  };
}

/** Something that a plan would do otherwise than the one that was reviewed. */
interface WorkDifference {
  /** The configuration, or what the state and the service make of it. */
  readonly in: "program";
  /** `update gatehouse_public_key.ana`. */
  readonly object: string;
  /** A sentence for people. */
  readonly message: string;
}

/** How the work of a plan differs from what was reviewed; empty where it is the same. */
export function workDifferences(reviewed: PlannedWork, now: PlannedWork): WorkDifference[] {
  if (reviewed.digest === now.digest) return [];
  const [was, is] = [new Set(reviewed.changes), new Set(now.changes)];
  const of = (changes: readonly string[], what: string) =>
    changes.map((object) => ({ in: "program" as const, object, message: `${object}: ${what}` }));
  const differences = [
    ...of(
      [...was].filter((change) => !is.has(change)),
      "was reviewed, and is not planned any more",
    ),
    ...of(
      [...is].filter((change) => !was.has(change)),
      "was not reviewed",
    ),
  ];
  if (differences.length > 0) return differences;
  return of(["the plan"], "changes the same resources, by another configuration or with other values");
}

/**
 * The work that an earlier review has kept.
 * @throws EngineError (`plan_file`) where the text is none
 */
export function parseWork(text: string, name: string): PlannedWork {
  try {
    return plannedWork.parse(parseJson(text));
  } catch (cause) {
    const how = "review --terraform --save writes it";
    throw new EngineError(
      "plan_file",
      `${name} is not what a review of a plan of Terraform has kept; ${how}`,
      {
        cause,
      },
    );
  }
}

function isDone({ change, previous_address: previous, action_reason: reason }: ResourceChange): boolean {
  // What a check looks at is read by every plan.
  if (reason === "read_because_check_nested") return false;
  return change.actions.join() !== "no-op" || change.importing != null || previous !== undefined;
}

/** A value without what is sensitive in it. */
function masked(value: unknown, mask: unknown): unknown {
  if (mask === true) return "(sensitive)";
  if (typeof mask !== "object" || mask === null) return value;
  if (Array.isArray(value)) return value.map((item, index) => masked(item, (mask as unknown[])[index]));
  if (typeof value !== "object" || value === null) return value;
  const masks = mask as Readonly<Record<string, unknown>>;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, masked(inner, masks[name])]));
}

/** The values of a resource without what the service alone changes. */
function lasting(
  attributes: readonly Attribute[],
  values: ResourceChange["change"]["before"],
): ResourceChange["change"]["before"] {
  const passing = attributes.flatMap((one) =>
    one.role === "output" && (one.field.volatile || one.field.mutable !== undefined) ? [one.name] : [],
  );
  return values && Object.fromEntries(Object.entries(values).filter(([name]) => !passing.includes(name)));
}
