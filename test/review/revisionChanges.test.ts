import { describe, expect, test } from "vitest";
import type { Plan, Step } from "../../provider/engine/index.ts";
import { revisionChanges } from "../../provider/review/revisionChanges.ts";
import { sshKeyLine } from "../provider/support/programs.ts";

const DATA = sshKeyLine();

type Inputs = NonNullable<Step["after"]>["inputs"];

/** A step of a plan; a deletion has no inputs. */
function step(op: Step["op"], kind: string, name: string, inputs?: Inputs, more: Partial<Step> = {}): Step {
  const type = kind.includes(":") ? kind : `pulumi-nodejs:dynamic/gatehouse:${kind}`;
  const urn = `urn:pulumi:test::fleet::${type}::${name}`;
  return { op, urn, type, name, fields: [], ...(inputs && { after: { inputs, outputs: {} } }), ...more };
}

const key = (username: string, more: Inputs = {}) => ({
  ...{ data: DATA, username, filter: { hostname: "^web-" }, __logicalId: "urn" },
  ...more,
});

const changes = (base: readonly Step[], head: readonly Step[]) => {
  const { steps, summary, unseen } = revisionChanges(
    { steps: base } as unknown as Plan,
    { steps: head } as unknown as Plan,
  );
  const told = steps
    .filter(({ op }) => op !== "same")
    .map(({ op, name, fields }) => [op, name, ...fields.map(({ path }) => path)].join(" "));
  return { told, summary, unseen, steps };
};

describe("what becomes of resources from one revision to another", () => {
  test.each(["create", "same"] as const)(
    "is nothing where the plugin takes the place of a class: %s",
    (op) => {
      const { told, summary } = changes(
        [step(op, "PublicKey", "ana", key("^root$"))],
        [step(op, "gatehouse:index:PublicKey", "ana", key("^root$"))],
      );
      expect([told, summary.same]).toEqual([[], 1]);
    },
  );

  test.each(["create", "update", "replace", "same"] as const)(
    "is nothing where both say the same, whatever the state has of it: %s",
    (op) => {
      const { told, summary } = changes(
        [step(op, "PublicKey", "ana", key("^root$"))],
        [step(op, "PublicKey", "ana", key("^root$"))],
      );
      expect([told, summary.same]).toEqual([[], 1]);
    },
  );

  test("is what they say differently, though the state has neither or one of them", () => {
    const [old, now] = [key("^root$"), key("^deploy$", { filter: { hostname: "^db-" } })];
    for (const [was, is] of [
      ["create", "create"],
      ["same", "update"],
      ["update", "same"],
    ] as const) {
      const { told, steps } = changes(
        [step(was, "PublicKey", "ana", old)],
        [step(is, "PublicKey", "ana", now)],
      );
      expect(told).toEqual(["update ana username filter.hostname"]);
      expect(steps[0]?.fields[0]).toEqual({ path: "username", old: "^root$", new: "^deploy$" });
    }
  });

  test("is a creation or a deletion where only one declares it, whatever the plans do", () => {
    const { told, summary } = changes(
      [step("delete", "PublicKey", "new"), step("create", "PublicKey", "old", { username: "^root$" })],
      [step("same", "PublicKey", "new", { username: "^root$" }), step("delete", "PublicKey", "gone")],
    );
    expect(told).toEqual(["create new username", "delete old username"]);
    expect(summary).toMatchObject({ create: 1, delete: 1, same: 0 });
  });

  test("is an import where the head imports it", () => {
    const { told } = changes([], [step("import", "PublicKey", "ana", { username: "^root$" })]);
    expect(told).toEqual(["import ana username"]);
  });

  test("is a replacement where the resource says so; of others, where the plan does", () => {
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

  test("knows a resource by its object where the program renames it", () => {
    const named = (name: string, id: string) => step("same", "PublicKey", name, key("^root$"), { id });
    expect(changes([named("ana", "1/a")], [named("ana-laptop", "1/a")]).told).toEqual([]);
    expect(changes([named("ana", "1/a")], [named("bob", "1/b")]).told.length).toBe(2);
  });

  test("is nothing of spelling, of what steers a run, and of what classes add", () => {
    const { told } = changes(
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
    expect(told).toEqual([]);
  });

  test("is not known of what both hide, unless neither changes it", () => {
    const hidden = (op: Step["op"]) => [step(op, "PublicKey", "ana", key("[secret]"))];
    expect(changes(hidden("same"), hidden("same")).unseen).toEqual([]);
    const open = [step("same", "PublicKey", "ana", key("^root$"))];
    const closed = [step("update", "PublicKey", "ana", key("^root$", { data: "[unknown]" }))];
    expect(changes(open, closed)).toMatchObject({ told: ["replace ana data"], unseen: [] });
    const { told, unseen } = changes(hidden("same"), hidden("update"));
    expect(told).toEqual([]);
    expect(unseen).toEqual([
      'PublicKey "ana": cannot compare the two revisions of username, which is secret or unknown before the apply',
    ]);
  });
});
