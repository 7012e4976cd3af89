import { chain, cleanUp, destroy, owned, type Scenario, things, up } from "./scenario.ts";

export const replacementScenarios: Scenario[] = [
  {
    name: "a chain of replacements",
    steps: [{ what: "created", plan: chain("a"), up }, { what: "replaced", plan: chain("z"), up }, cleanUp],
  },
  {
    name: "deletion before replacement by the option",
    steps: [
      { what: "created", plan: chain("a", { deleteBeforeReplace: true }), up },
      { what: "replaced", plan: chain("z", { deleteBeforeReplace: true }), up },
    ],
  },
  {
    name: "deletion before replacement by the provider, interrupted",
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
        what: "deleted, and not created again",
        plan: things(
          { name: "a", args: { exclusive: true, label: "z", fail: "create" } },
          { name: "b", args: { strict: true }, from: { ref: ["a", "id"] } },
        ),
        up,
      },
      {
        what: "created again",
        plan: things(
          { name: "a", args: { exclusive: true, label: "z" } },
          { name: "b", args: { strict: true }, from: { ref: ["a", "id"] } },
        ),
        up,
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
      { what: "created", plan: chain("a", { deleteBeforeReplace: true }), up },
      {
        what: "deleted, and not created again",
        plan: {
          things: [
            { name: "a", args: { label: "z", fail: "create" }, options: { deleteBeforeReplace: true } },
            ...(chain("z").things?.slice(1) ?? []),
          ],
        },
        up,
      },
      { what: "the rest deleted", plan: things({ name: "other" }), up },
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
