import { describe, expect, test } from "vitest";
import type { Step } from "../../provider/engine/index.ts";
import { fingerprintOf, keyInputs, keyState, lineC, plan, ruleInputs, uidOf } from "./support/planned.ts";
import { creation, managing, OTHER, step, TENANT } from "./support/steps.ts";

describe("duplicate declarations", () => {
  const duplicates = (...steps: Step[]) =>
    plan(...steps).duplicates.map(({ urns }) => urns.map((urn) => urn.split("::").at(-1)));
  const tagged = (name: string, selector: string) =>
    creation("DeviceTags", name, { device: selector, tags: ["prod"] });
  const attached = (name: string, selector: string, tag: string) =>
    creation("DeviceTagAttachment", name, { device: selector, tag });

  test("are two keys with one fingerprint, two members with one address, and two API keys with one name", () => {
    const keys = ["x", "y"].map((name, at) =>
      creation("PublicKey", name, { ...keyInputs, data: `${lineC} ${at}` }),
    );
    expect(duplicates(...keys)).toEqual([["x", "y"]]);
    expect(plan(...keys).duplicates[0]?.object).toBe(`key ${fingerprintOf(lineC)}`);
    const members = ["Bob@example.com", "bob@example.com"].map((email) =>
      creation("Member", email, { email, role: "operator" }),
    );
    expect(duplicates(...members)).toEqual([["Bob@example.com", "bob@example.com"]]);
    const ends = ["x", "y"].map((name) => creation("ApiKey", name, { name: "deploy", validDays: 30 }));
    expect(duplicates(...ends)).toEqual([["x", "y"]]);
  });

  test("are two resources that select one device by different values", () => {
    expect(duplicates(tagged("x", "web-01"), tagged("y", "02:00:00:00:00:01"))).toEqual([["x", "y"]]);
    expect(plan(tagged("x", "web-01"), tagged("y", uidOf("web-01"))).duplicates[0]?.object).toBe(
      "tags of the device web-01",
    );
    const state = managing("Device", uidOf("web-01"), { name: "web-01" });
    const known = step("same", "Device", "x", { ...state, after: { device: "web-01" } });
    expect(duplicates(known, creation("Device", "y", { device: uidOf("web-01") }))).toEqual([["x", "y"]]);
  });

  test("are DeviceTags and a DeviceTagAttachment of one device, but not two attachments of different tags", () => {
    expect(duplicates(tagged("x", "web-01"), attached("y", uidOf("web-01"), "lab"))).toEqual([["x", "y"]]);
    expect(duplicates(attached("x", "web-01", "lab"), attached("y", uidOf("web-01"), "edge"))).toEqual([]);
    expect(duplicates(attached("x", "web-01", "lab"), attached("y", uidOf("web-01"), "lab"))).toEqual([
      ["x", "y"],
    ]);
  });

  test("are two imports of one rule, but not a deleted resource or a resource of another namespace", () => {
    const imported = (name: string) =>
      step("import", "FirewallRule", name, { id: `${TENANT}/1`, after: ruleInputs });
    expect(duplicates(imported("x"), imported("y"))).toEqual([["x", "y"]]);
    const heir = creation("PublicKey", "heir", { ...keyInputs, adopt: true });
    expect(duplicates(step("delete", "PublicKey", "a", keyState), heir)).toEqual([]);
    const theirs = creation("PublicKey", "k", { ...keyInputs, tenant: OTHER });
    expect(duplicates(theirs, heir)).toEqual([]);
  });
});
