import { describe, expect, test } from "vitest";
import type { Step } from "../../provider/engine/index.ts";
import { revisionChanges } from "../../provider/review/revisionChanges.ts";
import { sshKeyLine } from "../provider/support/programs.ts";
import { planOf } from "./support/steps.ts";

const DATA = sshKeyLine();

type Inputs = NonNullable<Step["after"]>["inputs"];

/** A step of a plan. A deletion has no inputs. */
function step(op: Step["op"], kind: string, name: string, inputs?: Inputs, more: Partial<Step> = {}): Step {
  const type = kind.includes(":") ? kind : `pulumi-nodejs:dynamic/gatehouse:${kind}`;
  const urn = `urn:pulumi:test::fleet::${type}::${name}`;
  return { op, urn, type, name, fields: [], ...(inputs && { after: { inputs, outputs: {} } }), ...more };
}

const key = (username: string, more: Inputs = {}) => ({
  data: DATA,
  username,
  filter: { hostname: "^web-" },
  __logicalId: "urn",
  ...more,
});

const changes = (base: readonly Step[], head: readonly Step[]) => {
  const { steps, summary, notEvaluated } = revisionChanges(planOf(...base), planOf(...head));
  const lines = steps
    .filter(({ op }) => op !== "same")
    .map(({ op, name, fields }) => [op, name, ...fields.map(({ path }) => path)].join(" "));
  return { lines, summary, notEvaluated, steps };
};

describe("the changes between two revisions", () => {
  test.each<[Step["op"], string]>([
    ["create", "gatehouse:index:PublicKey"],
    ["same", "gatehouse:index:PublicKey"],
    ["create", "PublicKey"],
    ["update", "PublicKey"],
    ["replace", "PublicKey"],
    ["same", "PublicKey"],
  ])(
    "are empty if both revisions declare the same resource: both plans have the step %s, and the head has the type %s",
    (op, kind) => {
      const { lines, summary } = changes(
        [step(op, "PublicKey", "ana", key("^root$"))],
        [step(op, kind, "ana", key("^root$"))],
      );
      expect([lines, summary.same]).toEqual([[], 1]);
    },
  );

  test("contain the fields that differ, also if the state contains neither revision or only one revision of the resource", () => {
    const [old, now] = [key("^root$"), key("^deploy$", { filter: { hostname: "^db-" } })];
    for (const [was, is] of [
      ["create", "create"],
      ["same", "update"],
      ["update", "same"],
    ] as const) {
      const { lines, steps } = changes(
        [step(was, "PublicKey", "ana", old)],
        [step(is, "PublicKey", "ana", now)],
      );
      expect(lines).toEqual(["update ana username filter.hostname"]);
      expect(steps[0]?.fields[0]).toEqual({ path: "username", old: "^root$", new: "^deploy$" });
    }
  });

  test("contain a creation or deletion if only one revision declares the resource, whatever the plans contain", () => {
    const { lines, summary } = changes(
      [step("delete", "PublicKey", "new"), step("create", "PublicKey", "old", { username: "^root$" })],
      [step("same", "PublicKey", "new", { username: "^root$" }), step("delete", "PublicKey", "gone")],
    );
    expect(lines).toEqual(["create new username", "delete old username"]);
    expect(summary).toMatchObject({ create: 1, delete: 1, same: 0 });
  });

  test("contain an import if the head imports the resource", () => {
    const { lines } = changes([], [step("import", "PublicKey", "ana", { username: "^root$" })]);
    expect(lines).toEqual(["import ana username"]);
  });

  test("contain a replacement if the resource's definition requires it, or for other packages if the plan contains a replacement", () => {
    const moved = (replaceKeys: string[]) => [
      step("replace", "random:index:Id", "id", { seed: 2, size: 1 }, { replaceKeys }),
    ];
    const was = [step("same", "random:index:Id", "id", { seed: 1, size: 1 })];
    expect(changes(was, moved(["seed"])).steps).toMatchObject([{ op: "replace", replaceKeys: ["seed"] }]);
    expect(changes(was, moved(["size"])).steps).toMatchObject([{ op: "update" }]);
    const [before, after] = [key("^root$"), key("^root$", { data: sshKeyLine() })];
    const { steps } = changes(
      [step("create", "PublicKey", "ana", before)],
      [step("create", "PublicKey", "ana", after)],
    );
    expect(steps).toMatchObject([{ op: "replace", replaceKeys: ["data"] }]);
  });

  test("match a renamed resource by the id of its object", () => {
    const named = (name: string, id: string) => step("same", "PublicKey", name, key("^root$"), { id });
    expect(changes([named("ana", "1/a")], [named("ana-laptop", "1/a")]).lines).toEqual([]);
    expect(changes([named("ana", "1/a")], [named("bob", "1/b")]).lines.length).toBe(2);
  });

  test("ignore spelling, run options and inputs that classes add", () => {
    const { lines } = changes(
      [step("same", "PublicKey", "ana", key("^root$", { filter: { tags: ["a", "b"] }, __logicalId: "1" }))],
      [
        step(
          "update",
          "PublicKey",
          "ana",
          key("^root$", { filter: { tags: ["b", "a"] }, adopt: true, __logicalId: "2" }),
        ),
      ],
    );
    expect(lines).toEqual([]);
  });

  test("are unknown for secret values that at least one plan changes", () => {
    const hidden = (op: Step["op"]) => [step(op, "PublicKey", "ana", key("[secret]"))];
    expect(changes(hidden("same"), hidden("same")).notEvaluated).toEqual([]);
    const open = [step("same", "PublicKey", "ana", key("^root$"))];
    const closed = [step("update", "PublicKey", "ana", key("^root$", { data: "[unknown]" }))];
    expect(changes(open, closed)).toMatchObject({ lines: ["replace ana data"], notEvaluated: [] });
    const { lines, notEvaluated } = changes(hidden("same"), hidden("update"));
    expect(lines).toEqual([]);
    expect(notEvaluated).toEqual([
      'PublicKey "ana": cannot compare the two revisions of username, which is secret or unknown before the apply',
    ]);
  });
});
