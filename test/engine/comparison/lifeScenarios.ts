import { applied, declared, destroyed, family, line, type Scenario } from "./scenario.ts";

const dependent = { name: "b", from: { ref: ["a", "id"] as [string, string] } };

export const lifeScenarios: Scenario[] = [
  {
    name: "components, secrets and outputs",
    steps: [
      applied("created", family(1, "swordfish")),
      applied("unchanged"),
      applied("changed, including the secret", family(2, "marlin")),
      applied("one child and one leaf removed", {
        ...family(2, "marlin"),
        things: family(2, "marlin").things?.slice(0, 2) ?? [],
        outputs: {},
      }),
      destroyed(),
    ],
  },
  {
    name: "failures in the middle of a run",
    steps: [
      applied("a creation fails", line({ fail: "create" })),
      applied("the next run continues", line({})),
      applied("an update fails", line({ size: 9, fail: "update" }, 2)),
      declared("the next run continues with fewer resources", {
        name: "a",
        args: { size: 2, fail: "delete" },
      }),
      declared("a deletion fails", { name: "a", args: { size: 3, fail: "delete" } }),
      destroyed("the destroy fails"),
    ],
  },
  {
    name: "an object with a failed initialization",
    steps: [
      declared("created, initialization failed", { name: "a", args: { fail: "init" } }, dependent),
      declared("initialized", { name: "a" }, dependent),
      destroyed(),
    ],
  },
  {
    name: "an old object that cannot be deleted after its replacement",
    steps: [
      declared("created", { name: "a", args: { fail: "delete" } }),
      declared("replaced, the old object remains", { name: "a", args: { label: "z" } }),
      applied("tried again"),
      { what: "deleted out of band", tamper: (ws) => ws.tamper("a"), up: { refresh: true } },
    ],
  },
];
