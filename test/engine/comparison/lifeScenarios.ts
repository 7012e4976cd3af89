import { cleanUp, destroy, family, line, type Scenario, things, up } from "./scenario.ts";

export const lifeScenarios: Scenario[] = [
  {
    name: "components, secrets and outputs",
    steps: [
      { what: "created", plan: family(1, "swordfish"), up },
      { what: "unchanged", up },
      { what: "changed, including the secret", plan: family(2, "marlin"), up },
      {
        what: "one child and one leaf removed",
        plan: { ...family(2, "marlin"), things: family(2, "marlin").things?.slice(0, 2) ?? [], outputs: {} },
        up,
      },
      cleanUp,
    ],
  },
  {
    name: "failures in the middle of a run",
    steps: [
      { what: "a creation fails", plan: line({ fail: "create" }), up },
      { what: "the next run continues", plan: line({}), up },
      { what: "an update fails", plan: line({ size: 9, fail: "update" }, 2), up },
      {
        what: "the next run continues with fewer resources",
        plan: things({ name: "a", args: { size: 2, fail: "delete" } }),
        up,
      },
      { what: "a deletion fails", plan: things({ name: "a", args: { size: 3, fail: "delete" } }), up },
      { what: "the destroy fails", destroy },
    ],
  },
  {
    name: "an object with a failed initialization",
    steps: [
      {
        what: "created, initialization failed",
        plan: things({ name: "a", args: { fail: "init" } }, { name: "b", from: { ref: ["a", "id"] } }),
        up,
      },
      { what: "initialized", plan: things({ name: "a" }, { name: "b", from: { ref: ["a", "id"] } }), up },
      cleanUp,
    ],
  },
  {
    name: "an old object that cannot be deleted after its replacement",
    steps: [
      { what: "created", plan: things({ name: "a", args: { fail: "delete" } }), up },
      { what: "replaced, the old object remains", plan: things({ name: "a", args: { label: "z" } }), up },
      { what: "tried again", up },
      { what: "deleted out of band", tamper: (ws) => ws.tamper("a"), up: { refresh: true } },
    ],
  },
];
