import { chain, line, type Scenario, things, up, urn } from "./scenario.ts";

export const targetScenarios: Scenario[] = [
  {
    name: "targets",
    steps: [
      { what: "created", plan: line({ size: 1 }), up },
      { what: "one of the changed resources", plan: line({ size: 2 }, 2), up: { target: [urn("a")] } },
      {
        what: "one with its dependents",
        plan: line({ size: 3 }, 3),
        up: { target: [urn("b")], targetDependents: true },
      },
      {
        what: "wildcards",
        plan: line({ size: 4 }, 4),
        up: { target: ["**::a", "urn:pulumi:*::*::*::c"] },
      },
      { what: "all but one", plan: line({ size: 5 }, 5), up: { exclude: [urn("c")] } },
      {
        what: "all but one with its dependents",
        plan: line({ size: 6 }, 6),
        up: { exclude: [urn("b")], excludeDependents: true },
      },
      { what: "no such resource", up: { target: [urn("missing")] } },
      { what: "replaced on demand", plan: line({ size: 6 }, 6), up: { replace: [urn("c")] } },
      { what: "a deletion with remaining dependents", destroy: { target: [urn("b")] } },
      { what: "a deletion with its dependents", destroy: { target: [urn("b")], targetDependents: true } },
    ],
  },
  {
    name: "targets that do not exist yet or no longer exist",
    steps: [
      {
        what: "a new resource that depends on an omitted new one",
        plan: line({}),
        up: { target: [urn("b")] },
      },
      { what: "only a new resource", plan: line({}), up: { target: [urn("a")] } },
      { what: "the rest", plan: line({}), up },
      {
        what: "only the targeted one of the removed resources",
        plan: things({ name: "a", args: { size: 1 } }),
        up: { target: [urn("c")] },
      },
      { what: "all but the excluded", destroy: { exclude: [urn("a")] } },
    ],
  },
  {
    name: "a target whose replacement requires another resource",
    steps: [
      { what: "created", plan: chain("a", { deleteBeforeReplace: true }), up },
      {
        what: "replaced with a dependent that is not a target",
        plan: chain("z", { deleteBeforeReplace: true }),
        up: { target: [urn("a")] },
        differs: {
          why: "taken-along",
          outcome: (cli) => ({
            ...cli,
            calls: cli.calls.map((call) =>
              call.includes('"kind":"create","label":"b"') ? call.replace("a-1", "z-1") : call,
            ),
            state: cli.state.map((state) =>
              state.urn === urn("b") ? JSON.parse(JSON.stringify(state).replaceAll("a-1", "z-1")) : state,
            ),
          }),
        },
      },
    ],
  },
  {
    name: "refresh",
    steps: [
      { what: "created", plan: line({}), up },
      {
        what: "one of two differences refreshed",
        tamper: (ws) => {
          ws.tamper("a", { size: 7 });
          ws.tamper("b", { size: 8 });
        },
        refresh: { target: [urn("a")] },
      },
      { what: "the rest refreshed", refresh: {} },
      { what: "repaired", up },
      { what: "one deleted out of band", tamper: (ws) => ws.tamper("b"), refresh: {} },
      { what: "created again", up },
      {
        what: "one of two refreshed and repaired at once",
        tamper: (ws) => {
          ws.tamper("a", { size: 7 });
          ws.tamper("b", { size: 8 });
        },
        up: { refresh: true, target: [urn("b")] },
      },
    ],
  },
];
