import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { UNKNOWN } from "../../provider/engineMarks.ts";
import { check } from "../../provider/lifecycle/checkInputs.ts";
import { diff } from "../../provider/lifecycle/diff.ts";
import type { ResourceDefinition } from "../../provider/model/definition.ts";
import { filterState } from "../../provider/model/deviceFilter.ts";
import { optional } from "../../provider/model/fields.ts";
import { canonical, canonicalInputs } from "../../provider/model/values.ts";
import { definitions } from "../../provider/resources/index.ts";
import { programs } from "./support/programs.ts";

const cases = definitions.map((definition) => [definition.name, definition] as const);

/** Returns the state that a resource with these inputs has after an up. */
function applied(definition: ResourceDefinition, inputs: Record<string, unknown>): Record<string, unknown> {
  // The diff of an ApiKey also reads these outputs.
  return { expiresAt: "", previous: [], ...canonicalInputs(definition.inputs, inputs) };
}

describe.each(cases)("%s inputs", (name, definition) => {
  const valid = programs(name);

  it("pass the check when valid", () => {
    fc.assert(
      fc.property(valid, (inputs) => {
        expect(check(definition, inputs).failures).toEqual([]);
      }),
    );
  });

  it("have one canonical form", () => {
    fc.assert(
      fc.property(valid, (inputs) => {
        const once = canonicalInputs(definition.inputs, inputs);
        expect(canonicalInputs(definition.inputs, once)).toEqual(once);
      }),
    );
  });

  it("have no difference from their applied state", () => {
    fc.assert(
      fc.property(valid, (inputs) => {
        expect(diff(definition, applied(definition, inputs), inputs)).toEqual([]);
      }),
    );
  });

  it("have a difference in exactly the changed field", () => {
    fc.assert(
      fc.property(
        valid,
        valid,
        fc.constantFrom(...Object.keys(definition.inputs)),
        (before, after, field) => {
          const state = applied(definition, before);
          const program = { ...before, [field]: after[field] };
          const changed = diff(definition, state, program).map((change) => change.field);
          const canonicalAfter = canonicalInputs(definition.inputs, program);
          const compared = !definition.inputs[field]?.transient && canonicalAfter[field] !== undefined;
          const differs = !isDeepStrictEqual(canonicalAfter[field], state[field]);
          expect(changed).toEqual(compared && differs ? [field] : []);
        },
      ),
    );
  });

  it("may be unknown: unknown inputs pass the check and count as a change", () => {
    fc.assert(
      fc.property(valid, fc.constantFrom(...Object.keys(definition.inputs)), (inputs, field) => {
        const program = { ...inputs, [field]: UNKNOWN };
        const { failures, inputs: checked } = check(definition, program);
        expect(failures).toEqual([]);
        const changes = diff(definition, applied(definition, inputs), checked);
        const { transient, replaces } = definition.inputs[field] ?? {};
        expect(changes.map((change) => change.field)).toEqual(transient ? [] : [field]);
        expect(changes.every((change) => change.replaces === replaces)).toBe(true);
      }),
    );
  });

  it("are rejected if a required input is missing, or if an input has an unknown name", () => {
    const { failures } = check(definition, { color: "red" });
    const reasons = failures.map(({ message }) => message);
    const required = Object.entries(definition.inputs).filter(([, field]) => field.required);
    for (const [field] of required) {
      expect(reasons).toContainEqual(expect.stringMatching(`^${name}\\.${field} is required`));
    }
    expect(reasons).toContainEqual(
      expect.stringMatching(`^${name}\\.color is not an input of this resource\\. Valid inputs: `),
    );
  });
});

describe("equal inputs in different forms", () => {
  const byName = (name: string) =>
    definitions.find((definition) => definition.name === name) as ResourceDefinition;
  const blob = "AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
  const key = {
    name: "laptop",
    data: `ssh-ed25519 ${blob} ana@laptop\n`,
    username: "^ana$",
    filter: { tags: ["web", "prod"] },
  };

  it.each([
    ["another comment", { ...key, data: `ssh-ed25519 ${blob} other@host` }],
    ["no comment, more white space", { ...key, data: `  ssh-ed25519   ${blob}\n\n` }],
    ["another order of tags", { ...key, filter: { tags: ["prod", "web"] } }],
    ["an empty member", { ...key, filter: { tags: ["prod", "web"], hostname: undefined } }],
    ["null for an omitted input", { ...key, tenant: null }],
  ])("PublicKey: %s is no change", (_case, program) => {
    const definition = byName("PublicKey");
    expect(diff(definition, applied(definition, key), program)).toEqual([]);
  });

  it.each([
    ["omitted settings", { name: "fleet" }],
    ["default settings", { name: "fleet", settings: { sessionRecord: true, connectionAnnouncement: "" } }],
    ["half of the settings", { name: "fleet", settings: { sessionRecord: true } }],
    ["settings of an older state", { name: "fleet", settings: { connectionAnnouncement: "" } }],
    [
      "settings that are added with their default values",
      { name: "fleet", settings: { deviceProof: "optional", sshForwarding: [] } },
    ],
    ["empty settings", { name: "fleet", settings: {}, forceDestroy: false }],
    ["upper case", { name: "FLEET" }],
  ])("Namespace: %s is no change", (_case, program) => {
    const definition = byName("Namespace");
    expect(diff(definition, applied(definition, { name: "fleet" }), program)).toEqual([]);
  });

  it.each([
    [{ tags: ["web", "prod"] }, { tags: ["prod", "web"] }],
    [{ hostname: "", tags: ["prod"] }, { tags: ["prod"] }],
    [{ hostname: "^web-", tags: [] }, { hostname: "^web-" }],
    [{ hostname: ".*" }, { hostname: ".*" }],
    [{}, { hostname: "" }],
  ])("the service's filter %j becomes %j", (sent, state) => {
    expect(filterState(sent)).toEqual(state);
  });

  it.each(["pending", "rejected"])(
    "DeviceTags: the name of a %s device may refer to another device",
    (deviceStatus) => {
      const state = {
        device: "a".repeat(64),
        tags: ["prod"],
        deviceStatus,
        uid: "a".repeat(64),
        mac: "02:00:00:00:00:01",
        deviceName: "web-01",
      };
      const changed = (device: string) => diff(byName("DeviceTags"), state, { device, tags: ["prod"] });
      for (const device of ["web-01", "02:00:00:00:00:01"]) {
        expect(changed(device)).toMatchObject([{ field: "device", replaces: true }]);
      }
      expect(changed("A".repeat(64))).toEqual([]);
    },
  );

  it("DeviceTags: another selector of the same device is no change, and another device requires a replacement", () => {
    const definition = byName("DeviceTags");
    const state = {
      device: "web-01",
      tags: ["prod"],
      uid: "a".repeat(64),
      mac: "02:00:00:00:00:0A",
      deviceName: "Web-01",
    };
    for (const device of ["WEB-01", "02:00:00:00:00:0a", "a".repeat(64)]) {
      expect(diff(definition, state, { device, tags: ["prod"] })).toEqual([]);
    }
    expect(diff(definition, state, { device: "web-02", tags: ["prod"] })).toMatchObject([
      { field: "device", replaces: true },
    ]);
  });

  it("Member: an expired invitation is sent again, and a pending invitation is not", () => {
    const definition = byName("Member");
    const state = {
      email: "a@example.org",
      role: "observer",
      status: "pending",
      invitationExpiresAt: "2026-01-08T00:00:00.000Z",
    };
    const program = { email: "a@example.org", role: "observer" };
    expect(diff(definition, state, program, new Date("2026-01-07T00:00:00Z"))).toEqual([]);
    expect(diff(definition, state, program, new Date("2026-01-09T00:00:00Z"))).toMatchObject([
      { field: "role", replaces: false },
    ]);
  });
});

describe("the canonical value of an input", () => {
  const settings = optional(z.looseObject({}), { description: "", default: { record: true, text: "" } });
  const list = optional(z.looseObject({}), { description: "" });

  it.each([
    ["nothing", undefined, { record: true, text: "" }],
    ["null", null, { record: true, text: "" }],
    ["an empty text", "", { record: true, text: "" }],
    ["a part", { text: "hello" }, { record: true, text: "hello" }],
    ["undefined members", { record: undefined, text: "hello" }, { record: true, text: "hello" }],
    ["null members", { record: null, text: "hello" }, { record: true, text: "hello" }],
    ["an unknown member", { record: UNKNOWN }, { record: UNKNOWN, text: "" }],
  ])("has the defaults for %s", (_case, value, expected) => {
    expect(canonical(settings, value)).toStrictEqual(expected);
  });

  it("contains lists as sorted sets, and no empty members", () => {
    const value = { items: ["b", "a", "b"], none: null, missing: undefined };
    expect(canonical(list, value)).toStrictEqual({ items: ["a", "b"] });
  });

  it("is absent without a value and a default", () => {
    expect(canonicalInputs({ list, settings }, { list: "" })).toStrictEqual({
      settings: { record: true, text: "" },
    });
  });
});
