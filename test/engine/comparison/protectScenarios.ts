import { declared, destroyed, type Scenario } from "./scenario.ts";

const dependent = { name: "b", options: { dependsOn: ["a"] } };
const first = { name: "a", options: { deleteBeforeReplace: true } };
const strict = {
  name: "b",
  args: { strict: true },
  from: { ref: ["a", "id"] as [string, string] },
  options: { protect: true },
};

export const protectScenarios: Scenario[] = [
  {
    name: "retainOnDelete",
    steps: [
      declared(
        "created",
        { name: "a", options: { retainOnDelete: true } },
        { name: "b", options: { retainOnDelete: true } },
      ),
      declared("one replaced, one removed", {
        name: "a",
        args: { label: "z" },
        options: { retainOnDelete: true },
      }),
      destroyed(),
    ],
  },
  {
    name: "protect",
    steps: [
      declared("created", { name: "a", options: { protect: true } }, dependent),
      declared("removed from the program", { name: "b" }),
      declared("to be replaced", { name: "a", args: { label: "z" }, options: { protect: true } }, dependent),
      destroyed("to be destroyed"),
      declared("unprotected and replaced at once", { name: "a", args: { label: "z" } }, dependent),
      destroyed(),
    ],
  },
  {
    name: "protect of a dependent that must be deleted first",
    steps: [
      declared("created", first, strict),
      declared("to be replaced", { ...first, args: { label: "z" } }, strict),
    ],
  },
];
