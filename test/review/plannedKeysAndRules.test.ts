import { describe, expect, test } from "vitest";
import {
  estate,
  fingerprintOf,
  keyA,
  keyB,
  keyId,
  keyInputs,
  keyState,
  lineC,
  plan,
  rule,
  ruleInputs,
  ruleState,
} from "./support/planned.ts";
import { creation, managing, step, urnOf } from "./support/steps.ts";

describe("PublicKey", () => {
  test("a create adds the key at the end, with the fingerprint of the key's data", () => {
    const { policy } = plan(creation("PublicKey", "c", { ...keyInputs, data: `${lineC} comment` }));
    expect(policy.keys).toEqual([
      keyA,
      keyB,
      { fingerprint: fingerprintOf(lineC), name: "a", username: "^ana$", filter: { hostname: ".*" } },
    ]);
  });

  test("an update keeps the position of the key", () => {
    const { policy } = plan(step("update", "PublicKey", "a", { ...keyState, after: keyInputs }));
    expect(policy.keys).toEqual([{ ...keyA, username: "^ana$", filter: { hostname: ".*" } }, keyB]);
  });

  test("a replace deletes the old key", () => {
    const after = { ...keyInputs, data: lineC };
    const { policy } = plan(step("replace", "PublicKey", "a", { ...keyState, after }));
    expect(policy.keys.map(({ fingerprint }) => fingerprint)).toEqual([
      keyB.fingerprint,
      fingerprintOf(lineC),
    ]);
  });

  test("a delete keeps a key that another resource adopts", () => {
    const deletion = step("delete", "PublicKey", "a", keyState);
    expect(plan(deletion).policy.keys).toEqual([keyB]);
    const adopting = creation("PublicKey", "heir", { ...keyInputs, adopt: "overwrite" });
    expect(plan(deletion, adopting).policy.keys).toMatchObject([
      { fingerprint: keyA.fingerprint, username: "^ana$" },
      keyB,
    ]);
  });

  test("a delete with retainOnDelete keeps the key", () => {
    const deletion = step("delete", "PublicKey", "a", keyState);
    const planned = plan({
      ...deletion,
      ...(deletion.before && { before: { ...deletion.before, retained: true } }),
    });
    expect(planned.policy).toEqual(estate.policy);
    expect(planned.unknown).toEqual([
      'PublicKey "a" leaves its object unmanaged on the service; the access that the object gives remains',
    ]);
  });

  test("an import leaves the key unchanged, and the key is managed", () => {
    const planned = plan(
      step("import", "PublicKey", "a", { id: keyId, after: { ...keyInputs, username: "^root$" } }),
    );
    expect(planned.policy).toEqual(estate.policy);
    expect(planned.managed).toEqual([
      { kind: "PublicKey", id: keyA.fingerprint, urn: urnOf("PublicKey", "a") },
    ]);
  });

  test.each([
    ["create", {}, "[unknown]", "without this resource"],
    ["update", keyState, "[unknown]", "with its object unchanged"],
    ["replace", keyState, "[secret]", "with its object unchanged"],
  ] as const)("%s with an unknown filter changes nothing", (op, state, hidden, rest) => {
    const after = { ...keyInputs, filter: { tags: ["prod", hidden] } };
    const planned = plan(step(op, "PublicKey", "a", { ...state, after }));
    expect(planned.policy).toEqual(estate.policy);
    expect(planned.notEvaluated).toEqual([
      `PublicKey "a": its filter is secret or unknown before the apply; access is evaluated ${rest}`,
    ]);
  });

  test("plans a key whose name is not yet known", () => {
    const planned = plan(creation("PublicKey", "c", { ...keyInputs, data: lineC, name: "[unknown]" }));
    expect(planned.policy.keys.at(-1)).toMatchObject({ name: "c", fingerprint: fingerprintOf(lineC) });
    expect(planned.notEvaluated).toEqual([]);
  });

  test("reports an update of a key that no longer exists", () => {
    const state = managing("PublicKey", fingerprintOf(lineC));
    const planned = plan(step("update", "PublicKey", "c", { ...state, after: keyInputs }));
    expect(planned.policy).toEqual(estate.policy);
    expect(planned.notEvaluated.join()).toContain('PublicKey "c": its object no longer exists');
    expect(planned.managed).toEqual([]);
  });
});

describe("FirewallRule", () => {
  test("a create adds rules at the end, in the order of the plan, with the name of the resource", () => {
    const { policy } = plan(
      creation("FirewallRule", "x", ruleInputs),
      creation("FirewallRule", "y", { ...ruleInputs, priority: 8 }),
      { ...creation("FirewallRule", "x", ruleInputs), urn: "urn of another x" },
    );
    expect(policy.rules.map(({ id }) => id)).toEqual(["1", "2", "x (new)", "y (new)", "x (new, 2)"]);
    expect(policy.rules[2]).toEqual({ ...rule("x (new)"), ...ruleInputs });
  });

  test("an update keeps the position of a rule, and a replace moves the rule to the end", () => {
    const update = plan(step("update", "FirewallRule", "x", { ...ruleState, after: ruleInputs }));
    expect(update.policy.rules.map(({ id, priority }) => [id, priority])).toEqual([
      ["1", 7],
      ["2", 9],
    ]);
    expect(plan(step("delete", "FirewallRule", "x", ruleState)).policy.rules.map(({ id }) => id)).toEqual([
      "2",
    ]);
    const replace = plan(step("replace", "FirewallRule", "x", { ...ruleState, after: ruleInputs }));
    expect(replace.policy.rules.map(({ id }) => id)).toEqual(["2", "x (new)"]);
  });

  test("the adoption of an equal rule creates no rule", () => {
    const { id: _id, ...equal } = rule("1");
    const after = { ...equal, filter: { tags: ["prod"] } };
    const adopted = plan(creation("FirewallRule", "x", { ...after, adopt: true }));
    expect(adopted.policy).toEqual(estate.policy);
    expect(adopted.managed).toEqual([{ kind: "FirewallRule", id: "1", urn: urnOf("FirewallRule", "x") }]);
    expect(plan(creation("FirewallRule", "x", after)).policy.rules).toHaveLength(3);
  });

  test("reports that the order of two new rules is unknown", () => {
    const planned = plan(
      creation("FirewallRule", "x", ruleInputs),
      creation("FirewallRule", "y", { ...ruleInputs, action: "deny" }),
      creation("FirewallRule", "z", { ...ruleInputs, priority: 8 }),
    );
    expect(planned.notEvaluated).toHaveLength(1);
    expect(planned.notEvaluated[0]).toMatch(
      /"x \(new\)" and "y \(new\)" have the same priority 7; .*unknown before the apply/,
    );
  });

  test("keeps the old rule if a new pattern is unknown", () => {
    const after = { ...ruleInputs, sourceIp: "[unknown]", username: "[secret]" };
    const planned = plan(step("update", "FirewallRule", "x", { ...ruleState, after }));
    expect(planned.policy).toEqual(estate.policy);
    expect(planned.notEvaluated[0]).toMatch(
      /^FirewallRule "x": its sourceIp and username are secret or unknown/,
    );
  });
});
