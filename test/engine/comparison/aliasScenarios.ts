import { applied, declared, type Scenario } from "./scenario.ts";

const child = { name: "child", from: { ref: ["first", "id"] as [string, string] }, group: "g" };

export const aliasScenarios: Scenario[] = [
  {
    name: "aliases by name, parent and type",
    steps: [
      applied("created", {
        groups: [{ name: "g", type: "cloud:Group" }],
        things: [
          { name: "a" },
          { name: "b", from: { ref: ["a", "id"] } },
          { name: "g-child", group: "g" },
          { name: "in", group: "g" },
        ],
      }),
      applied("renamed, moved, with another type", {
        groups: [
          { name: "h", type: "cloud:Team", options: { aliases: [{ name: "g", type: "cloud:Group" }] } },
        ],
        things: [
          { name: "a2", args: { label: "a" }, options: { aliases: [{ name: "a" }] } },
          { name: "b", from: { ref: ["a2", "id"] }, group: "h", options: { aliases: [{ parent: "root" }] } },
          { name: "h-child", args: { label: "g-child" }, group: "h" },
          { name: "out", args: { label: "in" }, options: { aliases: [{ name: "in", parent: "group h" }] } },
        ],
      }),
      applied("aliases removed", {
        groups: [{ name: "h", type: "cloud:Team" }],
        things: [
          { name: "a2", args: { label: "a" } },
          { name: "b", from: { ref: ["a2", "id"] }, group: "h" },
          { name: "h-child", args: { label: "g-child" }, group: "h" },
          { name: "out", args: { label: "in" } },
        ],
      }),
    ],
  },
  {
    name: "children of a renamed parent after a failure",
    steps: [
      applied("created", { groups: [{ name: "g" }], things: [{ name: "first" }, child] }),
      applied("stopped before the child", {
        groups: [{ name: "g", type: "cloud:Team", options: { aliases: [{ type: "cloud:Group" }] } }],
        things: [{ name: "first", args: { size: 2, fail: "update" }, options: {} }, child],
      }),
      applied("alias removed", {
        groups: [{ name: "g", type: "cloud:Team" }],
        things: [{ name: "first" }, child],
      }),
    ],
  },
  {
    name: "aliases in conflict",
    steps: [
      declared("created", { name: "a" }, { name: "b", options: { dependsOn: ["a"] } }),
      declared(
        "an alias of an existing resource",
        { name: "a" },
        { name: "c", options: { aliases: [{ name: "a" }], dependsOn: ["a"] } },
      ),
      declared(
        "two with the same alias",
        { name: "c", options: { aliases: [{ name: "a" }] } },
        { name: "d", options: { aliases: [{ name: "a" }], dependsOn: ["c"] } },
      ),
      declared(
        "a resource whose URN an alias has",
        { name: "c", options: { aliases: [{ name: "a" }] } },
        { name: "a", options: { dependsOn: ["c"] } },
      ),
    ],
  },
];
