import { type Scenario, things, up } from "./scenario.ts";

export const aliasScenarios: Scenario[] = [
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
        what: "renamed, moved, with another type",
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
        what: "aliases removed",
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
    name: "children of a renamed parent after a failure",
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
        what: "alias removed",
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
        what: "an alias of an existing resource",
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
        what: "a resource whose URN an alias has",
        plan: things(
          { name: "c", options: { aliases: [{ name: "a" }] } },
          { name: "a", options: { dependsOn: ["c"] } },
        ),
        up,
      },
    ],
  },
];
