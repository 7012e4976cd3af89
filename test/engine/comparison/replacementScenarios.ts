import { applied, chain, declared, destroyed, owned, type Scenario, things } from "./scenario.ts";

const deletedFirst = { deleteBeforeReplace: true };
const strict = { name: "b", args: { strict: true }, from: { ref: ["a", "id"] as [string, string] } };
const exclusive = (args: object = {}) => ({ name: "a", args: { exclusive: true, ...args } });

export const replacementScenarios: Scenario[] = [
  {
    name: "a chain of replacements",
    steps: [applied("created", chain("a")), applied("replaced", chain("z")), destroyed()],
  },
  {
    name: "deletion before replacement by the option",
    steps: [applied("created", chain("a", deletedFirst)), applied("replaced", chain("z", deletedFirst))],
  },
  {
    name: "deletion before replacement by the provider, interrupted",
    steps: [
      declared("created", exclusive(), strict),
      declared("deleted, and not created again", exclusive({ label: "z", fail: "create" }), strict),
      {
        ...declared("created again", exclusive({ label: "z" }), strict),
        differs: {
          why: "deleted-once",
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
    name: "a resource that was deleted for a replacement and then removed from the program",
    steps: [
      applied("created", chain("a", deletedFirst)),
      declared(
        "deleted, and not created again",
        { name: "a", args: { label: "z", fail: "create" }, options: deletedFirst },
        ...(chain("z").things?.slice(1) ?? []),
      ),
      declared("the rest deleted", { name: "other" }),
    ],
  },
  {
    name: "deletedWith",
    steps: [
      applied("created", owned("owner")),
      applied("the owner replaced", owned("z")),
      applied("the owner replaced, deleted first", owned("y", deletedFirst)),
      destroyed(),
    ],
  },
  {
    name: "ignoreChanges and replaceOnChanges",
    steps: [
      declared("created", { name: "a", args: { size: 1 } }, { name: "b", args: { size: 1 } }),
      declared(
        "changed",
        { name: "a", args: { size: 2 }, options: { ignoreChanges: ["size"] } },
        { name: "b", args: { size: 1, password: "x" }, options: { ignoreChanges: ["password"] } },
      ),
      declared(
        "all ignored",
        { name: "a", args: { size: 3, label: "z" }, options: { ignoreChanges: ["*"] } },
        { name: "b", args: { size: 1 } },
      ),
    ],
  },
  {
    name: "replaceOnChanges",
    steps: [
      declared("created", { name: "a", args: { size: 1 } }),
      {
        what: "changed",
        plan: things({ name: "a", args: { size: 2 }, options: { replaceOnChanges: ["size"] } }),
        up: {},
        differs: {
          why: "replace-on-changes",
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
];
