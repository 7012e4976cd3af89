import { cleanUp, destroy, type Scenario, things, up } from "./scenario.ts";

export const protectScenarios: Scenario[] = [
  {
    name: "retainOnDelete",
    steps: [
      {
        what: "created",
        plan: things(
          { name: "a", options: { retainOnDelete: true } },
          { name: "b", options: { retainOnDelete: true } },
        ),
        up,
      },
      {
        what: "one replaced, one removed",
        plan: things({ name: "a", args: { label: "z" }, options: { retainOnDelete: true } }),
        up,
      },
      cleanUp,
    ],
  },
  {
    name: "protect",
    steps: [
      {
        what: "created",
        plan: things({ name: "a", options: { protect: true } }, { name: "b", options: { dependsOn: ["a"] } }),
        up,
      },
      { what: "removed from the program", plan: things({ name: "b" }), up },
      {
        what: "to be replaced",
        plan: things(
          { name: "a", args: { label: "z" }, options: { protect: true } },
          { name: "b", options: { dependsOn: ["a"] } },
        ),
        up,
      },
      { what: "to be destroyed", destroy },
      {
        what: "unprotected and replaced at once",
        plan: things({ name: "a", args: { label: "z" } }, { name: "b", options: { dependsOn: ["a"] } }),
        up,
      },
      cleanUp,
    ],
  },
  {
    name: "protect of a dependent that must be deleted first",
    steps: [
      {
        what: "created",
        plan: things(
          { name: "a", options: { deleteBeforeReplace: true } },
          { name: "b", args: { strict: true }, from: { ref: ["a", "id"] }, options: { protect: true } },
        ),
        up,
      },
      {
        what: "to be replaced",
        plan: things(
          { name: "a", args: { label: "z" }, options: { deleteBeforeReplace: true } },
          { name: "b", args: { strict: true }, from: { ref: ["a", "id"] }, options: { protect: true } },
        ),
        up,
      },
    ],
  },
];
