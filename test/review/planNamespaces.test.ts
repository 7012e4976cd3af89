import { describe, expect, test } from "vitest";
import type { Step } from "../../provider/engine/index.ts";
import {
  changesNamespace,
  createdNamespaces,
  namespacesOf,
  unplacedNotes,
} from "../../provider/plan/steps.ts";
import type { Connection } from "../../provider/service/connection.ts";
import { keyInputs } from "./support/planned.ts";
import { creation, OTHER, planOf, step, TENANT } from "./support/steps.ts";

/** A connection whose settings select the namespace {@link TENANT}. */
const connection = {
  homeIfAny: async () => ({ tenant: TENANT, unsettled: undefined }),
} as unknown as Connection;

const inOther = { before: { outputs: { tenant: OTHER, name: "a" } }, id: `${OTHER}/aa` };
const secret = {
  before: { inputs: { tenant: "[secret]" }, outputs: { tenant: "[secret]" } },
  id: `${OTHER}/aa`,
  after: { ...keyInputs, tenant: "[secret]" },
};

describe("a plan changes a namespace", () => {
  test.each<[string, Step]>([
    ["that a new resource sets", creation("PublicKey", "a", { ...keyInputs, tenant: OTHER })],
    ["whose object a resource adopts", creation("FirewallRule", "a", { adopt: true, tenant: OTHER })],
    [
      "that contains an imported object",
      step("import", "PublicKey", "a", { ...inOther, after: { tenant: OTHER } }),
    ],
    [
      "whose object a resource changes",
      step("update", "PublicKey", "a", { ...inOther, after: { tenant: OTHER } }),
    ],
    ["whose object it deletes", step("delete", "PublicKey", "a", inOther)],
    [
      "from which an object moves",
      step("replace", "PublicKey", "a", { ...inOther, after: { tenant: TENANT } }),
    ],
    [
      "to which an object moves",
      step("replace", "PublicKey", "a", {
        before: { outputs: { tenant: TENANT } },
        id: `${TENANT}/aa`,
        after: { tenant: OTHER },
      }),
    ],
    ["that is a secret value, if a resource changes an object", step("update", "PublicKey", "a", secret)],
  ])("%s", async (_what, changed) => {
    const plan = planOf(changed);
    const { tenants, main } = await namespacesOf(connection, [plan]);
    expect([tenants, main]).toEqual([[TENANT, OTHER], TENANT]);
    expect(changesNamespace(plan, OTHER, TENANT)).toBe(true);
    expect(unplacedNotes(plan)).toEqual([]);
  });

  test("only if a step is not the same", () => {
    const same = step("same", "PublicKey", "a", { ...inOther, after: { tenant: OTHER } });
    const other = creation("PublicKey", "b", { ...keyInputs, tenant: TENANT });
    expect(changesNamespace(planOf(same, other), OTHER, TENANT)).toBe(false);
    expect(changesNamespace(planOf(same, other), TENANT, TENANT)).toBe(true);
  });
});

test("a new resource with a secret namespace is reported, since it may be in any namespace", () => {
  const hidden = creation("PublicKey", "a", { ...keyInputs, tenant: "[secret]" });
  expect(unplacedNotes(planOf(hidden))).toEqual([
    expect.stringMatching(/^PublicKey "a": its namespace is secret or unknown before the apply/),
  ]);
});

test("the names of new namespaces are known unless they are secret or unknown", () => {
  const named = (name: string) => creation("Namespace", name, { name });
  const adopted = step("create", "Namespace", "old", { after: { name: "old", adopt: true }, id: OTHER });
  const plan = planOf(named("trials"), named("[unknown]"), named("[secret]"), adopted);
  expect(createdNamespaces(plan)).toEqual(["trials", undefined, undefined]);
});
