import { describe, expect, test } from "vitest";
import type { StepOp } from "../../provider/engine/index.ts";
import { namespaceAfter } from "./support/namespace.ts";
import { device, devices, estate, on, plan, tagsOf, uidOf } from "./support/planned.ts";
import { creation, managing, planOf, step, TENANT } from "./support/steps.ts";

describe("DeviceTags", () => {
  const stateOf = (name: string, ...tags: string[]) => managing("Device", uidOf(name), { ...on(name), tags });
  const state = stateOf("web-02", "prod", "web");
  const created = (device: string, ...tags: string[]) => creation("DeviceTags", "t", { device, tags });
  const changed = (op: "update" | "replace", device: string, ...tags: string[]) =>
    step(op, "DeviceTags", "t", { ...state, after: { device, tags } });

  test.each([uidOf("web-01"), "WEB-01", "02-00-00-00-00-01"])(
    "a create sets all tags of the device %s",
    (selector) => {
      expect(tagsOf(plan(created(selector, "a1b", "c2d")), "web-01")).toEqual(["a1b", "c2d"]);
    },
  );

  test("an update sets the tags, a replace moves the tags to another device, and a delete removes the tags in the state", () => {
    expect(tagsOf(plan(changed("update", "web-02", "new")), "web-02")).toEqual(["new"]);
    const moved = plan(changed("replace", "lab-03", "web"));
    expect([tagsOf(moved, "web-02"), tagsOf(moved, "lab-03")]).toEqual([[], ["web"]]);
    // The deletion of DeviceTags removes only the tags that the state contains. The device keeps its other tags.
    const deletion = step("delete", "DeviceTags", "t", stateOf("web-02", "web"));
    expect(tagsOf(plan(deletion), "web-02")).toEqual(["prod"]);
  });

  test("keeps tags that attachments adopt, and attached tags that DeviceTags adopts", () => {
    const attach = { device: "web-02", tag: "web", adopt: true };
    const over = plan(step("delete", "DeviceTags", "t", state), creation("DeviceTagAttachment", "w", attach));
    expect(tagsOf(over, "web-02")).toEqual(["web"]);
    const back = plan(
      step("delete", "DeviceTagAttachment", "w", {
        before: { outputs: on("web-02") },
        id: `${TENANT}/${uidOf("web-02")}/web`,
      }),
      created("web-02", "web"),
    );
    expect(tagsOf(back, "web-02")).toEqual(["web"]);
  });

  test("finds a device by the planned name, also after a failed lookup", () => {
    const planned = plan(
      creation("Device", "missing", { device: "edge-99", name: "edge-99" }),
      creation("Device", "d", { device: "web-01", name: "front" }),
      created("front", "edge"),
    );
    expect(tagsOf(planned, "front")).toEqual(["edge"]);
    expect(planned.notEvaluated).toEqual([
      'Device "missing": there is no device "edge-99" yet; access is evaluated without this resource',
    ]);
  });

  test("reports a missing or unknown device, and changes nothing", () => {
    const missing = plan(created("edge-99", "edge"));
    expect(missing.notEvaluated).toEqual([
      'DeviceTags "t": there is no device "edge-99" yet; access is evaluated without this resource',
    ]);
    const hidden = plan(changed("replace", "[unknown]", "edge"));
    expect(hidden.notEvaluated[0]).toMatch(/^DeviceTags "t": its device is secret or unknown/);
    for (const { policy } of [missing, hidden]) expect(policy).toEqual(estate.policy);
    const after = { device: "gone-05", tags: ["edge"] };
    const late = plan(step("update", "DeviceTags", "t", { ...stateOf("gone-05"), after }));
    expect(late.notEvaluated[0]).toContain(`its device ${uidOf("gone-05")} no longer exists`);
  });
});

describe("DeviceTagAttachment", () => {
  const state = { before: { outputs: on("web-02") }, id: `${TENANT}/${uidOf("web-02")}/web` };

  test("a create adds a tag, a delete removes the tag, a replace does both, and an update changes nothing", () => {
    const planned = (op: StepOp, sides: Partial<typeof state>, device: string, tag: string) =>
      plan(step(op, "DeviceTagAttachment", "x", { ...sides, after: { device, tag } }));
    expect(tagsOf(planned("create", {}, "web-01", "edge"), "web-01")).toEqual(["prod", "edge"]);
    expect(tagsOf(plan(step("delete", "DeviceTagAttachment", "x", state)), "web-02")).toEqual(["prod"]);
    expect(tagsOf(planned("replace", state, "web-02", "edge"), "web-02")).toEqual(["prod", "edge"]);
    expect(planned("update", state, uidOf("web-02"), "web").policy).toEqual(estate.policy);
  });
});

describe("Tag", () => {
  const rename = (name: string, from: string, to: string) =>
    step("update", "Tag", name, { ...managing("Tag", from), after: { name: to } });

  test("a rename applies to devices and filters, also to unmanaged ones", () => {
    const { policy } = plan(rename("t", "prod", "live"));
    expect(policy.devices.map(({ tags }) => tags)).toEqual([["live"], ["live", "web"], ["lab"]]);
    expect(policy.keys.map(({ filter }) => filter)).toEqual([{ tags: ["live"] }, { hostname: "^web" }]);
    expect(policy.rules.map(({ filter }) => filter)).toEqual([{ tags: ["live"] }, { tags: ["live"] }]);
  });

  test("a name can move from one tag to another", () => {
    const planned = plan(rename("x", "prod", "lab"), rename("y", "lab", "old"));
    expect(planned.policy.devices.map(({ tags }) => tags)).toEqual([["lab"], ["lab", "web"], ["old"]]);
  });

  test("creating and deleting the resource changes nothing", () => {
    const state = managing("Tag", "prod");
    expect(plan(creation("Tag", "t", { name: "prod" })).policy).toEqual(estate.policy);
    expect(plan(step("delete", "Tag", "t", state)).policy).toEqual(estate.policy);
    const hidden = plan(step("update", "Tag", "t", { ...state, after: { name: "[unknown]" } }));
    expect(hidden.policy).toEqual(estate.policy);
    expect(hidden.notEvaluated[0]).toMatch(/^Tag "t": its name is secret or unknown/);
  });
});

describe("Device", () => {
  const state = (onDestroy: string) => managing("Device", uidOf("web-01"), { name: "web-01", onDestroy });
  const names = (planned: ReturnType<typeof plan>) => planned.policy.devices.map(({ name }) => name);

  test("renames and accepts a device", () => {
    const named = plan(
      step("update", "Device", "d", { ...state("keep"), after: { device: "web-01", name: "Gate" } }),
    );
    expect(names(named)).toEqual(["gate", "web-02", "lab-03"]);
    const accepted = plan(
      creation("Device", "d", { device: "new-04", status: "accepted", name: "edge-04" }),
      creation("DeviceTags", "t", { device: "edge-04", tags: ["edge"] }),
    );
    expect(accepted.policy.devices.at(-1)).toEqual({ uid: uidOf("new-04"), name: "edge-04", tags: ["edge"] });
    expect(accepted.unknown).toEqual([]);
  });

  test("rejects only pending devices", () => {
    const rejected = plan(creation("Device", "d", { device: "new-04", status: "rejected" }));
    expect(rejected).toMatchObject({ policy: estate.policy, notEvaluated: [] });
    const refused = plan(
      step("update", "Device", "d", { ...state("keep"), after: { device: "web-01", status: "rejected" } }),
    );
    expect(refused.policy).toEqual(estate.policy);
    expect(refused.notEvaluated[0]).toContain("which the service does not allow");
  });

  test("replaces the old device of a machine if a new device of the same machine is accepted", () => {
    const reenrolled = device("new-04", [], { status: "pending", identity: { mac: "02:00:00:00:00:01" } });
    const swapped = { ...estate, devices: [...devices.slice(0, 3), reenrolled] };
    const after = { device: reenrolled.uid, status: "accepted" };
    const { policy } = namespaceAfter(swapped, planOf(creation("Device", "d", after)));
    expect(policy.devices.filter(({ name }) => name === "web-01").map(({ uid }) => uid)).toEqual([
      reenrolled.uid,
    ]);
    expect(policy.devices).toHaveLength(3);
  });

  test("deletes a device only if onDestroy is remove", () => {
    expect(names(plan(step("delete", "Device", "d", state("keep"))))).toEqual(["web-01", "web-02", "lab-03"]);
    expect(names(plan(step("delete", "Device", "d", state("remove"))))).toEqual(["web-02", "lab-03"]);
    const heir = creation("Device", "heir", { device: "web-01" });
    expect(names(plan(step("delete", "Device", "d", state("remove")), heir))).toEqual([
      "web-01",
      "web-02",
      "lab-03",
    ]);
  });
});
