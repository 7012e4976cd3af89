import { differenceText } from "../../../provider/dist/engine/differences.js";
import type { DestroyOptions, RefreshRunOptions, UpOptions } from "../../../provider/dist/engine/index.js";
import type { ProgramPlan, Thing, Workspace } from "../workspace.ts";
import type { Outcome } from "./observe.ts";

/** One command after the program, or the cloud, was changed. */
export type ScenarioStep = {
  what: string;
  plan?: ProgramPlan;
  tamper?: (ws: Workspace) => void;
  up?: UpOptions;
  refresh?: RefreshRunOptions;
  destroy?: DestroyOptions;
  /** Where the embedded engine is meant to differ from the CLI: why, and what follows from it. */
  differs?: { why: string; outcome: (cli: Outcome) => Outcome };
};

export type Scenario = { name: string; steps: ScenarioStep[] };

/** The urn of a thing without parent. */
export const urn = (name: string): string =>
  `urn:pulumi:test::cloud::pulumi-nodejs:dynamic/cloud:Thing::${name}`;

const things = (...list: Thing[]): ProgramPlan => ({ things: list });
const up = {};
const destroy = {};
const cleanUp: ScenarioStep = { what: "destroyed", destroy };

const family = (size: number, password: string): ProgramPlan => ({
  groups: [{ name: "outer" }, { name: "inner", options: { parent: "group outer" } }],
  things: [
    { name: "a", args: { size, password }, secret: ["password"], group: "outer" },
    { name: "b", from: { ref: ["a", "serial"] }, group: "inner" },
    { name: "c", from: { ref: ["b", "id"], password: ["a", "password"] } },
    { name: "d", args: { nested: { pin: password } }, secret: ["nested"], options: { dependsOn: ["c"] } },
  ],
  outputs: { serial: ["b", "serial"], password: ["c", "password"] },
});

const chain = (label: string, options: Thing["options"] = {}): ProgramPlan =>
  things(
    { name: "a", args: { label }, options },
    { name: "b", args: { strict: true }, from: { ref: ["a", "id"] } },
    { name: "c", from: { ref: ["b", "id"] } },
    { name: "d", options: { dependsOn: ["b"] } },
  );

const line = (last: Thing["args"], size = 1): ProgramPlan =>
  things(
    { name: "a", args: { size } },
    { name: "b", from: { ref: ["a", "id"] }, args: { size } },
    { name: "c", from: { ref: ["b", "id"] }, args: { ...last } },
  );

const owned = (label: string, options: Thing["options"] = {}): ProgramPlan =>
  things(
    { name: "owner", args: { label }, options },
    { name: "owned", options: { deletedWith: "owner" } },
    { name: "beside", options: { dependsOn: ["owner"] } },
  );

/** What both engines are put through. Where a step fails, all that it could have done depends on one another. */
export const scenarios: Scenario[] = [
  {
    name: "components, secrets and outputs",
    steps: [
      { what: "created", plan: family(1, "swordfish"), up },
      { what: "unchanged", up },
      { what: "changed, the secret too", plan: family(2, "marlin"), up },
      {
        what: "one child and one leaf gone",
        plan: { ...family(2, "marlin"), things: family(2, "marlin").things?.slice(0, 2) ?? [], outputs: {} },
        up,
      },
      cleanUp,
    ],
  },
  {
    name: "a chain of replacements",
    steps: [{ what: "created", plan: chain("a"), up }, { what: "replaced", plan: chain("z"), up }, cleanUp],
  },
  {
    name: "deletion before replacement, by the option",
    steps: [
      { what: "created", plan: chain("a", { deleteBeforeReplace: true }), up },
      { what: "replaced", plan: chain("z", { deleteBeforeReplace: true }), up },
    ],
  },
  {
    name: "deletion before replacement, by the provider, stopped in between",
    steps: [
      {
        what: "created",
        plan: things(
          { name: "a", args: { exclusive: true } },
          { name: "b", args: { strict: true }, from: { ref: ["a", "id"] } },
        ),
        up,
      },
      {
        what: "deleted, and not made again",
        plan: things(
          { name: "a", args: { exclusive: true, label: "z", fail: "create" } },
          { name: "b", args: { strict: true }, from: { ref: ["a", "id"] } },
        ),
        up,
      },
      {
        what: "made again",
        plan: things(
          { name: "a", args: { exclusive: true, label: "z" } },
          { name: "b", args: { strict: true }, from: { ref: ["a", "id"] } },
        ),
        up,
        differs: {
          why: differenceText("deleted-once"),
          outcome: (cli) => ({
            ...cli,
            calls: cli.calls.filter((call) => !call.includes('"kind":"delete","label":"b"')),
            order: cli.order.filter((pair) => !pair.includes("delete b")),
          }),
        },
      },
    ],
  },
  {
    name: "what was deleted for a replacement and then left the program",
    steps: [
      { what: "created", plan: chain("a", { deleteBeforeReplace: true }), up },
      {
        what: "deleted, and not made again",
        plan: {
          things: [
            { name: "a", args: { label: "z", fail: "create" }, options: { deleteBeforeReplace: true } },
            ...(chain("z").things?.slice(1) ?? []),
          ],
        },
        up,
      },
      { what: "nothing of it left", plan: things({ name: "other" }), up },
    ],
  },
  {
    name: "aliases by name, parent and type",
    steps: [
      {
        what: "created",
        plan: {
          groups: [{ name: "g", type: "cloud:Group" }],
          things: [
            { name: "a" },
            { name: "b", from: { ref: ["a", "id"] } },
            { name: "g-child", group: "g" },
            { name: "in", group: "g" },
          ],
        },
        up,
      },
      {
        what: "renamed, moved, of another type",
        plan: {
          groups: [
            { name: "h", type: "cloud:Team", options: { aliases: [{ name: "g", type: "cloud:Group" }] } },
          ],
          things: [
            { name: "a2", args: { label: "a" }, options: { aliases: [{ name: "a" }] } },
            {
              name: "b",
              from: { ref: ["a2", "id"] },
              group: "h",
              options: { aliases: [{ parent: "root" }] },
            },
            { name: "h-child", args: { label: "g-child" }, group: "h" },
            { name: "out", args: { label: "in" }, options: { aliases: [{ name: "in", parent: "group h" }] } },
          ],
        },
        up,
      },
      {
        what: "aliases taken away",
        plan: {
          groups: [{ name: "h", type: "cloud:Team" }],
          things: [
            { name: "a2", args: { label: "a" } },
            { name: "b", from: { ref: ["a2", "id"] }, group: "h" },
            { name: "h-child", args: { label: "g-child" }, group: "h" },
            { name: "out", args: { label: "in" } },
          ],
        },
        up,
      },
    ],
  },
  {
    name: "children follow a renamed parent that a failure left half-way",
    steps: [
      {
        what: "created",
        plan: {
          groups: [{ name: "g" }],
          things: [{ name: "first" }, { name: "child", from: { ref: ["first", "id"] }, group: "g" }],
        },
        up,
      },
      {
        what: "stopped before the child",
        plan: {
          groups: [{ name: "g", type: "cloud:Team", options: { aliases: [{ type: "cloud:Group" }] } }],
          things: [
            {
              name: "first",
              args: { size: 2, fail: "update" },
              options: {},
            },
            { name: "child", from: { ref: ["first", "id"] }, group: "g" },
          ],
        },
        up,
      },
      {
        what: "the alias taken away",
        plan: {
          groups: [{ name: "g", type: "cloud:Team" }],
          things: [{ name: "first" }, { name: "child", from: { ref: ["first", "id"] }, group: "g" }],
        },
        up,
      },
    ],
  },
  {
    name: "aliases in conflict",
    steps: [
      { what: "created", plan: things({ name: "a" }, { name: "b", options: { dependsOn: ["a"] } }), up },
      {
        what: "an alias of a resource that is there",
        plan: things({ name: "a" }, { name: "c", options: { aliases: [{ name: "a" }], dependsOn: ["a"] } }),
        up,
      },
      {
        what: "two with the same alias",
        plan: things(
          { name: "c", options: { aliases: [{ name: "a" }] } },
          { name: "d", options: { aliases: [{ name: "a" }], dependsOn: ["c"] } },
        ),
        up,
      },
      {
        what: "a resource whose urn was claimed",
        plan: things(
          { name: "c", options: { aliases: [{ name: "a" }] } },
          { name: "a", options: { dependsOn: ["c"] } },
        ),
        up,
      },
    ],
  },
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
        what: "one replaced, one gone",
        plan: things({ name: "a", args: { label: "z" }, options: { retainOnDelete: true } }),
        up,
      },
      cleanUp,
    ],
  },
  {
    name: "deletedWith",
    steps: [
      { what: "created", plan: owned("owner"), up },
      { what: "the owner replaced", plan: owned("z"), up },
      { what: "the owner replaced, deleted first", plan: owned("y", { deleteBeforeReplace: true }), up },
      { what: "destroyed", destroy },
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
      { what: "gone from the program", plan: things({ name: "b" }), up },
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
    name: "protect of a dependent that must go first",
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
  {
    name: "targets",
    steps: [
      { what: "created", plan: line({ size: 1 }), up },
      { what: "one of the changed", plan: line({ size: 2 }, 2), up: { target: [urn("a")] } },
      {
        what: "one and what depends on it",
        plan: line({ size: 3 }, 3),
        up: { target: [urn("b")], targetDependents: true },
      },
      {
        what: "by wildcards",
        plan: line({ size: 4 }, 4),
        up: { target: ["**::a", "urn:pulumi:*::*::*::c"] },
      },
      { what: "all but one", plan: line({ size: 5 }, 5), up: { exclude: [urn("c")] } },
      {
        what: "all but one and what depends on it",
        plan: line({ size: 6 }, 6),
        up: { exclude: [urn("b")], excludeDependents: true },
      },
      { what: "no such resource", up: { target: [urn("nobody")] } },
      { what: "replaced on demand", plan: line({ size: 6 }, 6), up: { replace: [urn("c")] } },
      { what: "a deletion that others need", destroy: { target: [urn("b")] } },
      { what: "a deletion with its dependents", destroy: { target: [urn("b")], targetDependents: true } },
    ],
  },
  {
    name: "targets that do not exist yet, or not any more",
    steps: [
      { what: "a new one that depends on a new one left out", plan: line({}), up: { target: [urn("b")] } },
      { what: "a new one alone", plan: line({}), up: { target: [urn("a")] } },
      { what: "the rest", plan: line({}), up },
      {
        what: "only the targeted of those gone",
        plan: things({ name: "a", args: { size: 1 } }),
        up: { target: [urn("c")] },
      },
      { what: "all but the excluded", destroy: { exclude: [urn("a")] } },
    ],
  },
  {
    name: "failures half-way",
    steps: [
      { what: "a creation fails", plan: line({ fail: "create" }), up },
      { what: "it goes on", plan: line({}), up },
      { what: "an update fails", plan: line({ size: 9, fail: "update" }, 2), up },
      { what: "it goes on with less", plan: things({ name: "a", args: { size: 2, fail: "delete" } }), up },
      { what: "a deletion fails", plan: things({ name: "a", args: { size: 3, fail: "delete" } }), up },
      { what: "it fails", destroy },
    ],
  },
  {
    name: "an object that does not come up",
    steps: [
      {
        what: "made, not in order",
        plan: things({ name: "a", args: { fail: "init" } }, { name: "b", from: { ref: ["a", "id"] } }),
        up,
      },
      { what: "brought up", plan: things({ name: "a" }, { name: "b", from: { ref: ["a", "id"] } }), up },
      cleanUp,
    ],
  },
  {
    name: "an old object that cannot be deleted after its replacement",
    steps: [
      { what: "created", plan: things({ name: "a", args: { fail: "delete" } }), up },
      { what: "replaced, the old one left", plan: things({ name: "a", args: { label: "z" } }), up },
      { what: "tried again", up },
      { what: "found gone", tamper: (ws) => ws.tamper("a"), up: { refresh: true } },
    ],
  },
  {
    name: "ignoreChanges and replaceOnChanges",
    steps: [
      {
        what: "created",
        plan: things({ name: "a", args: { size: 1 } }, { name: "b", args: { size: 1 } }),
        up,
      },
      {
        what: "changed",
        plan: things(
          { name: "a", args: { size: 2 }, options: { ignoreChanges: ["size"] } },
          { name: "b", args: { size: 1, password: "x" }, options: { ignoreChanges: ["password"] } },
        ),
        up,
      },
      {
        what: "all ignored",
        plan: things(
          { name: "a", args: { size: 3, label: "z" }, options: { ignoreChanges: ["*"] } },
          { name: "b", args: { size: 1 } },
        ),
        up,
      },
    ],
  },
  {
    name: "replaceOnChanges",
    steps: [
      { what: "created", plan: things({ name: "a", args: { size: 1 } }), up },
      {
        what: "changed",
        plan: things({ name: "a", args: { size: 2 }, options: { replaceOnChanges: ["size"] } }),
        up,
        differs: {
          why: differenceText("replace-on-changes"),
          outcome: (cli) => ({
            ...cli,
            summary: { ...cli.summary, update: 0, replace: 1 },
            calls: [
              '{"kind":"create","label":"a","news":{"label":"a","size":2}}',
              '{"kind":"delete","label":"a","id":"a-1","props":{"label":"a","serial":3,"size":1}}',
            ],
            order: ["create a < delete a"],
            state: cli.state.map((state) => (state.id === "a-1" ? { ...state, id: "a-2" } : state)),
          }),
        },
      },
    ],
  },
  {
    name: "a target that takes along what is none",
    steps: [
      { what: "created", plan: chain("a", { deleteBeforeReplace: true }), up },
      {
        what: "replaced with a dependent that is no target",
        plan: chain("z", { deleteBeforeReplace: true }),
        up: { target: [urn("a")] },
        differs: {
          why: differenceText("taken-along"),
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
        what: "one of two differences read",
        tamper: (ws) => {
          ws.tamper("a", { size: 7 });
          ws.tamper("b", { size: 8 });
        },
        refresh: { target: [urn("a")] },
      },
      { what: "the rest read", refresh: {} },
      { what: "repaired", up },
      { what: "one gone", tamper: (ws) => ws.tamper("b"), refresh: {} },
      { what: "made again", up },
      {
        what: "read and repaired at once, one of two",
        tamper: (ws) => {
          ws.tamper("a", { size: 7 });
          ws.tamper("b", { size: 8 });
        },
        up: { refresh: true, target: [urn("b")] },
      },
    ],
  },
];
