import { describe, expect, test } from "vitest";
import { namespaceAfter } from "./support/namespace.ts";
import { device, devices, estate, on, plan, planOf, step, TENANT, tagsOf, uidOf } from "./support/planned.ts";

describe("DeviceTags", () => {
  const state = {
    before: { outputs: { ...on("web-02"), tags: ["prod", "web"] } },
    id: `${TENANT}/${uidOf("web-02")}`,
  };

  test.each([uidOf("web-01"), "WEB-01", "02-00-00-00-00-01"])(
    "a create sets all tags of the device %s",
    (selector) => {
      const planned = plan(
        step("create", "DeviceTags", "t", { after: { device: selector, tags: ["a1b", "c2d"] } }),
      );
      expect(tagsOf(planned, "web-01")).toEqual(["a1b", "c2d"]);
    },
  );

  test("an update sets the tags, a replace moves the tags to another device, and a delete removes the tags in the state", () => {
    const update = plan(
      step("update", "DeviceTags", "t", { ...state, after: { device: "web-02", tags: ["new"] } }),
    );
    expect(tagsOf(update, "web-02")).toEqual(["new"]);
    const moved = plan(
      step("replace", "DeviceTags", "t", { ...state, after: { device: "lab-03", tags: ["web"] } }),
    );
    expect([tagsOf(moved, "web-02"), tagsOf(moved, "lab-03")]).toEqual([[], ["web"]]);
    // The deletion of DeviceTags removes only the tags that the state contains. The device keeps its other tags.
    const part = { before: { outputs: { ...on("web-02"), tags: ["web"] } }, id: state.id };
    expect(tagsOf(plan(step("delete", "DeviceTags", "t", part)), "web-02")).toEqual(["prod"]);
  });

  test("keeps tags that attachments adopt, and attached tags that DeviceTags adopts", () => {
    const attach = { device: "web-02", tag: "web", adopt: true };
    const over = plan(
      step("delete", "DeviceTags", "t", state),
      step("create", "DeviceTagAttachment", "w", { after: attach }),
    );
    expect(tagsOf(over, "web-02")).toEqual(["web"]);
    const back = plan(
      step("delete", "DeviceTagAttachment", "w", {
        before: { outputs: on("web-02") },
        id: `${TENANT}/${uidOf("web-02")}/web`,
      }),
      step("create", "DeviceTags", "t", { after: { device: "web-02", tags: ["web"] } }),
    );
    expect(tagsOf(back, "web-02")).toEqual(["web"]);
  });

  test("finds a device by the planned name, also after a failed lookup", () => {
    const planned = plan(
      step("create", "Device", "nobody", { after: { device: "edge-99", name: "edge-99" } }),
      step("create", "Device", "d", { after: { device: "web-01", name: "front" } }),
      step("create", "DeviceTags", "t", { after: { device: "front", tags: ["edge"] } }),
    );
    expect(tagsOf(planned, "front")).toEqual(["edge"]);
    expect(planned.notEvaluated).toEqual([
      'Device "nobody": there is no device "edge-99" yet; access is evaluated without this resource',
    ]);
  });

  test("reports a missing or unknown device, and changes nothing", () => {
    const missing = plan(step("create", "DeviceTags", "t", { after: { device: "edge-99", tags: ["edge"] } }));
    expect(missing.notEvaluated).toEqual([
      'DeviceTags "t": there is no device "edge-99" yet; access is evaluated without this resource',
    ]);
    const hidden = plan(
      step("replace", "DeviceTags", "t", { ...state, after: { device: "[unknown]", tags: ["edge"] } }),
    );
    expect(hidden.notEvaluated[0]).toMatch(/^DeviceTags "t": its device is secret or unknown/);
    for (const { policy } of [missing, hidden]) expect(policy).toEqual(estate.policy);
    const deleted = { before: { outputs: on("gone-05") }, id: `${TENANT}/${uidOf("gone-05")}` };
    const late = plan(
      step("update", "DeviceTags", "t", { ...deleted, after: { device: "gone-05", tags: ["edge"] } }),
    );
    expect(late.notEvaluated[0]).toContain(`its device ${uidOf("gone-05")} no longer exists`);
  });
});

describe("DeviceTagAttachment", () => {
  const state = { before: { outputs: on("web-02") }, id: `${TENANT}/${uidOf("web-02")}/web` };

  test("a create adds a tag, a delete removes the tag, a replace does both, and an update changes nothing", () => {
    const created = plan(
      step("create", "DeviceTagAttachment", "x", { after: { device: "web-01", tag: "edge" } }),
    );
    expect(tagsOf(created, "web-01")).toEqual(["prod", "edge"]);
    expect(tagsOf(plan(step("delete", "DeviceTagAttachment", "x", state)), "web-02")).toEqual(["prod"]);
    const other = plan(
      step("replace", "DeviceTagAttachment", "x", { ...state, after: { device: "web-02", tag: "edge" } }),
    );
    expect(tagsOf(other, "web-02")).toEqual(["prod", "edge"]);
    const renamed = plan(
      step("update", "DeviceTagAttachment", "x", {
        ...state,
        after: { device: uidOf("web-02"), tag: "web" },
      }),
    );
    expect(renamed.policy).toEqual(estate.policy);
  });
});

describe("Tag", () => {
  const rename = (name: string, from: string, to: string) =>
    step("update", "Tag", name, {
      before: { outputs: { name: from } },
      id: `${TENANT}/${from}`,
      after: { name: to },
    });

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
    const state = { before: { outputs: { name: "prod" } }, id: `${TENANT}/prod` };
    expect(plan(step("create", "Tag", "t", { after: { name: "prod" } })).policy).toEqual(estate.policy);
    expect(plan(step("delete", "Tag", "t", state)).policy).toEqual(estate.policy);
    const hidden = plan(step("update", "Tag", "t", { ...state, after: { name: "[unknown]" } }));
    expect(hidden.policy).toEqual(estate.policy);
    expect(hidden.notEvaluated[0]).toMatch(/^Tag "t": its name is secret or unknown/);
  });
});

describe("Device", () => {
  const state = (onDestroy: string) => ({
    before: { outputs: { uid: uidOf("web-01"), name: "web-01", onDestroy } },
    id: `${TENANT}/${uidOf("web-01")}`,
  });
  const names = (planned: ReturnType<typeof plan>) => planned.policy.devices.map(({ name }) => name);

  test("renames and accepts a device", () => {
    const named = plan(
      step("update", "Device", "d", { ...state("keep"), after: { device: "web-01", name: "Gate" } }),
    );
    expect(names(named)).toEqual(["gate", "web-02", "lab-03"]);
    const accepted = plan(
      step("create", "Device", "d", { after: { device: "new-04", status: "accepted", name: "edge-04" } }),
      step("create", "DeviceTags", "t", { after: { device: "edge-04", tags: ["edge"] } }),
    );
    expect(accepted.policy.devices.at(-1)).toEqual({ uid: uidOf("new-04"), name: "edge-04", tags: ["edge"] });
    expect(accepted.unknown).toEqual([]);
  });

  test("rejects only pending devices", () => {
    const rejected = plan(step("create", "Device", "d", { after: { device: "new-04", status: "rejected" } }));
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
    const { policy } = namespaceAfter(swapped, planOf(step("create", "Device", "d", { after })));
    expect(policy.devices.filter(({ name }) => name === "web-01").map(({ uid }) => uid)).toEqual([
      reenrolled.uid,
    ]);
    expect(policy.devices).toHaveLength(3);
  });

  test("deletes a device only if onDestroy is remove", () => {
    expect(names(plan(step("delete", "Device", "d", state("keep"))))).toEqual(["web-01", "web-02", "lab-03"]);
    expect(names(plan(step("delete", "Device", "d", state("remove"))))).toEqual(["web-02", "lab-03"]);
    const heir = step("create", "Device", "heir", { after: { device: "web-01" } });
    expect(names(plan(step("delete", "Device", "d", state("remove")), heir))).toEqual([
      "web-01",
      "web-02",
      "lab-03",
    ]);
  });
});
