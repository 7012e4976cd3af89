import type { Workspace } from "../workspace.ts";
import { applied, chain, destroyed, line, refreshed, type Scenario, things, urn } from "./scenario.ts";

const tamperTwo = (ws: Workspace) => {
  ws.tamper("a", { size: 7 });
  ws.tamper("b", { size: 8 });
};

export const targetScenarios: Scenario[] = [
  {
    name: "targets",
    steps: [
      applied("created", line({ size: 1 })),
      applied("one of the changed resources", line({ size: 2 }, 2), { target: [urn("a")] }),
      applied("one with its dependents", line({ size: 3 }, 3), {
        target: [urn("b")],
        targetDependents: true,
      }),
      applied("wildcards", line({ size: 4 }, 4), { target: ["**::a", "urn:pulumi:*::*::*::c"] }),
      applied("all but one", line({ size: 5 }, 5), { exclude: [urn("c")] }),
      applied("all but one with its dependents", line({ size: 6 }, 6), {
        exclude: [urn("b")],
        excludeDependents: true,
      }),
      applied("no such resource", undefined, { target: [urn("missing")] }),
      applied("replaced on demand", line({ size: 6 }, 6), { replace: [urn("c")] }),
      destroyed("a deletion with remaining dependents", { target: [urn("b")] }),
      destroyed("a deletion with its dependents", { target: [urn("b")], targetDependents: true }),
    ],
  },
  {
    name: "targets that do not exist yet or no longer exist",
    steps: [
      applied("a new resource that depends on an omitted new one", line({}), { target: [urn("b")] }),
      applied("only a new resource", line({}), { target: [urn("a")] }),
      applied("the rest", line({})),
      applied("only the targeted one of the removed resources", things({ name: "a", args: { size: 1 } }), {
        target: [urn("c")],
      }),
      destroyed("all but the excluded", { exclude: [urn("a")] }),
    ],
  },
  {
    name: "a target whose replacement requires another resource",
    steps: [
      applied("created", chain("a", { deleteBeforeReplace: true })),
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
      applied("created", line({})),
      refreshed("one of two differences refreshed", tamperTwo, { target: [urn("a")] }),
      refreshed("the rest refreshed"),
      applied("repaired"),
      refreshed("one deleted out of band", (ws) => ws.tamper("b")),
      applied("created again"),
      {
        what: "one of two refreshed and repaired at once",
        tamper: tamperTwo,
        up: { refresh: true, target: [urn("b")] },
      },
    ],
  },
];
