import type { Declarable } from "../../inventory/liveObjects.ts";
import { construction } from "./literal.ts";
import { named } from "./names.ts";
import { withHelpers } from "./shared.ts";

/** TypeScript that declares objects, each with `adopt: true`; without imports, for a program that is there already. */
export function adoptions(objects: readonly Declarable[]): string {
  const kinds = Map.groupBy(objects, ({ definition }) => definition.name);
  return [...kinds]
    .flatMap(([kind, some]) =>
      named(some, ({ name }) => name).map(({ resource, inputs }) =>
        construction(kind, resource, { ...withHelpers(inputs), adopt: true }),
      ),
    )
    .join("\n");
}
