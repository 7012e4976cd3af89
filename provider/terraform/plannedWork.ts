import { createHash } from "node:crypto";
import { z } from "zod";
import { EngineError } from "../engine/index.ts";
import { definitions } from "../resources/index.ts";
import { attributesOf } from "./attributes.ts";
import type { PlanJson, ResourceChange } from "./planJson.ts";
import { typeNameOf } from "./types.ts";

/** What a plan would do, as far as it is kept for a comparison: no value can be read from it. */
const plannedWork = z.strictObject({
  version: z.literal(1),
  /** Of everything that the plan would do, with all values. */
  digest: z.string(),
  /** `update gatehouse_public_key.ana`. */
  changes: z.array(z.string()),
});

export type PlannedWork = z.output<typeof plannedWork>;

/**
 * What a plan would do. Two plans of one configuration have the same, whenever they were made, unless what they would do
 * differs: objects that stay as they are do not count, nor what the service alone changes, such as when a key was used.
 */
export function workOf({ resource_changes: resources, output_changes: outputs }: PlanJson): PlannedWork {
  const done = resources.filter(isDone);
  const content = done.map(({ change, ...resource }) => ({
    ...{ ...resource, ...change },
    before: lasting(resource.type, change.before),
    after: lasting(resource.type, change.after),
  }));
  return {
    version: 1,
    digest: createHash("sha256")
      .update(JSON.stringify([content, outputs]))
      .digest("hex"),
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
  return of(["the plan"], "changes the same resources, with other values, or other outputs");
}

/**
 * The work that an earlier review has kept.
 * @throws EngineError (`plan_file`) where the text is none
 */
export function parseWork(text: string, name: string): PlannedWork {
  try {
    return plannedWork.parse(JSON.parse(text));
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

const isDone = ({ change, previous_address: previous }: ResourceChange): boolean =>
  change.actions.join() !== "no-op" || change.importing != null || previous !== undefined;

const volatile = new Map(
  definitions.map((definition) => [
    typeNameOf(definition),
    attributesOf(definition).flatMap((one) =>
      one.role === "output" && one.field.volatile ? [one.name] : [],
    ),
  ]),
);

/** The values of a resource without what the service alone changes. */
function lasting(type: string, values: ResourceChange["change"]["before"]): unknown {
  const names = volatile.get(type) ?? [];
  return values && Object.fromEntries(Object.entries(values).filter(([name]) => !names.includes(name)));
}
