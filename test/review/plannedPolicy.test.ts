import { describe, expect, test } from "vitest";
import { namespaceAfter } from "./support/namespace.ts";
import { estate, keyB, keyId, keyInputs, keyState, lineC, plan } from "./support/planned.ts";
import { creation, OTHER, planOf, step, TENANT, urnOf } from "./support/steps.ts";

test("a plan without changes keeps the live namespace", () => {
  const same = step("same", "PublicKey", "a", {
    ...keyState,
    after: { ...keyInputs, username: "^drifted$" },
  });
  for (const planned of [plan(), plan(same)]) {
    expect(planned.policy).toEqual(estate.policy);
    expect(planned).toMatchObject({ unknown: [], notes: [], duplicates: [] });
    expect(planned.members?.map(({ email }) => email)).toEqual(["owner@example.com", "bob@example.com"]);
  }
});

test("rejects a plan without values", () => {
  expect(() => plan(step("same", "PublicKey", "a", {}))).toThrow(/preview with values/);
});

test("ignores resources of other packages, components and the stack", () => {
  const stack = { ...step("update", "PublicKey", "a", {}), type: "pulumi:pulumi:Stack" };
  expect(plan(stack).policy).toEqual(estate.policy);
});

describe("namespaces", () => {
  test("are empty after deletion", () => {
    const planned = plan(
      step("delete", "Namespace", "n", { before: { outputs: { tenant: TENANT } }, id: TENANT }),
    );
    expect(planned.policy).toEqual({ devices: [], keys: [], rules: [] });
    expect([planned.members, planned.apiKeys]).toEqual([[], []]);
    expect(planned.managed).toEqual([{ kind: "Namespace", id: TENANT, urn: urnOf("Namespace", "n") }]);
  });

  test("do not include a new namespace and the resources in the new namespace", () => {
    const planned = plan(
      creation("Namespace", "n", { name: "trials" }),
      creation("PublicKey", "k", { ...keyInputs, data: lineC, tenant: "[unknown]" }),
    );
    expect(planned.policy).toEqual(estate.policy);
    expect(planned.notes).toHaveLength(2);
    expect(planned.notes.join()).toMatch(
      /Namespace "n" creates a namespace.*PublicKey "k" is in a namespace/,
    );
    expect(planned.unknown).toEqual([]);
  });

  test("do not include resources of other namespaces, even if the provider's default sets the namespace", () => {
    const theirs = creation("PublicKey", "k", { ...keyInputs, data: lineC, tenant: OTHER });
    expect(plan(theirs)).toMatchObject({ policy: estate.policy, unknown: [], notes: [] });
    const unnamed = planOf(creation("PublicKey", "k", { ...keyInputs, data: lineC }));
    expect(namespaceAfter(estate, unnamed, { home: OTHER }).policy).toEqual(estate.policy);
    expect(namespaceAfter(estate, unnamed).policy.keys).toHaveLength(3);
    // A resource belongs to the namespace in the state, even if the program sets no namespace.
    const state = { before: { outputs: { ...keyState.before.outputs, tenant: OTHER } }, id: keyId };
    expect(plan(step("update", "PublicKey", "a", { ...state, after: keyInputs })).policy).toEqual(
      estate.policy,
    );
  });

  test("lose an object that moves to another namespace", () => {
    const moved = step("replace", "PublicKey", "a", { ...keyState, after: { ...keyInputs, tenant: OTHER } });
    expect(plan(moved).policy.keys).toEqual([keyB]);
    const unclear = plan(
      step("replace", "PublicKey", "a", { ...keyState, after: { ...keyInputs, tenant: "[unknown]" } }),
    );
    expect(unclear.policy).toEqual(estate.policy);
    expect(unclear.notEvaluated[0]).toMatch(/^PublicKey "a": its namespace is unknown/);
  });
});
