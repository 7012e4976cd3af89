import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { EngineError } from "../../provider/engine/index.ts";
import { readTerraformPlan } from "../../provider/plan/terraform/readTerraformPlan.ts";

type Values = Record<string, unknown>;

interface TestChange {
  address: string;
  mode: string;
  type: string;
  provider_name?: string;
  deposed?: string;
  change: {
    actions: string[];
    before: Values | null;
    after: Values | null;
    after_unknown: Values | boolean;
  };
}

interface TestPlan {
  applyable?: boolean;
  complete?: boolean;
  errored: boolean;
  planned_values: { root_module?: { resources: Omit<TestChange, "change">[] } };
  resource_changes: TestChange[];
  prior_state: { values: { root_module: { resources: (TestChange & { values: Values })[] } } };
  variables?: Record<string, Values>;
  configuration: {
    provider_config: Record<string, Values>;
    root_module: { resources: { address: string; expressions: Values; provider_config_key?: string }[] };
  };
}

const TENANT = "99999999-2222-4333-8444-555555555555";

/** Returns a recorded plan. `exclude` updates the key `ana` and omits the key `ben`; `forget` forgets `ben`. */
function recorded(name: "exclude" | "forget"): TestPlan {
  const file = join(import.meta.dirname, "recorded", `opentofu-${name}.json`);
  return JSON.parse(readFileSync(file, "utf8")) as TestPlan;
}

const read = (plan: TestPlan) =>
  readTerraformPlan(JSON.stringify(plan), {
    name: "plan.json",
    workspace: { project: "fleet", stack: "default" },
    isSettingAlone: () => true,
    isInPlan: () => true,
  });

/** The change of a plan with this index. @throws Error if the plan has no such change */
function changeIn({ resource_changes: changes }: TestPlan, index = 0): TestChange {
  const change = changes[index];
  if (!change) throw new Error(`the plan has no change ${index}`);
  return change;
}

/** Writes values to an attribute in all parts of the plan that contain the planned values. */
function plan(edited: TestPlan, name: string, value: unknown): void {
  const { change } = changeIn(edited);
  Object.assign(change.after ?? {}, { [name]: value });
  delete edited.planned_values.root_module;
}

it.each(["gatehouse_public_key.josé", 'module.größe["a.b"].gatehouse_public_key.安["x.y"]'])(
  "a plan can contain the address %s",
  (address) => {
    const text = JSON.stringify(recorded("exclude"));
    const renamed = JSON.parse(text, (_, value) => (value === "gatehouse_public_key.ana" ? address : value));
    const [name] = address.split(".gatehouse");
    const { root_module: root } = renamed.configuration;
    if (address.startsWith("module.")) {
      const [own, ...others] = root.resources as { address: string }[];
      Object.assign(own ?? {}, { address: "gatehouse_public_key.安" });
      Object.assign(root, {
        resources: others,
        module_calls: { [name?.slice(7, -7) ?? ""]: { module: { resources: [own] } } },
      });
    }
    expect(() => read(renamed)).not.toThrow();
  },
);

describe("a plan with a part that this version does not know", () => {
  it.each<[string, (change: TestChange) => void, string]>([
    [
      "a resource type of the provider",
      (change) =>
        Object.assign(change, { type: "gatehouse_quantum_key", address: "gatehouse_quantum_key.a" }),
      "gatehouse_quantum_key.a: not evaluated, since this version does not know the resource type gatehouse_quantum_key",
    ],
    [
      "a resource type of the provider without the usual prefix",
      (change) => Object.assign(change, { type: "gh_key", address: "gh_key.a" }),
      "gh_key.a: not evaluated, since this version does not know the resource type gh_key",
    ],
    [
      "an action",
      ({ change }) => Object.assign(change, { actions: ["transfer"] }),
      "gatehouse_public_key.ana: not evaluated, since this version does not know the action transfer",
    ],
    [
      "a list of actions",
      ({ change }) => Object.assign(change, { actions: ["update", "delete"] }),
      "gatehouse_public_key.ana: not evaluated, since this version does not know the action update and delete",
    ],
    [
      "no action",
      ({ change }) => Object.assign(change, { actions: [] }),
      "gatehouse_public_key.ana: not evaluated, since its change has no action",
    ],
    [
      "a mode",
      (change) => Object.assign(change, { mode: "Managed" }),
      'gatehouse_public_key.ana: not evaluated, since this version does not know the mode "Managed"',
    ],
  ])("reports %s", (_what, edit, sentence) => {
    const edited = recorded("forget");
    const [first] = edited.resource_changes;
    if (first) edit(first);
    edited.planned_values = {};
    edited.prior_state.values.root_module.resources =
      edited.prior_state.values.root_module.resources.slice(1);
    expect(read(edited).notEvaluated).toEqual([expect.stringContaining(sentence)]);
  });

  it("reports a resource whose provider block belongs to the provider", () => {
    const edited = recorded("forget");
    edited.planned_values = {};
    Object.assign(changeIn(edited), { type: "other_key", provider_name: "registry.terraform.io/a/other" });
    expect(read(edited).notEvaluated).toEqual([
      expect.stringContaining("does not know the resource type other_key"),
    ]);
  });

  it("reports a resource that neither the changes nor the configuration contain", () => {
    const edited = recorded("exclude");
    edited.configuration.root_module.resources.splice(1);
    expect(read(edited).notEvaluated).toEqual([
      expect.stringContaining("gatehouse_public_key.ben: not evaluated, since neither the changes"),
    ]);
  });

  it("reports the plan of a failed run, even if it is empty", () => {
    const configuration = { provider_config: {}, root_module: {} };
    const text = JSON.stringify({ format_version: "1.2", errored: true, planned_values: {}, configuration });
    const origin = {
      name: "plan.json",
      workspace: { project: "fleet", stack: "default" },
      isSettingAlone: () => true,
      isInPlan: () => true,
    };
    expect(readTerraformPlan(text, origin).notEvaluated).toEqual([
      "the plan is incomplete, since its run failed",
    ]);
  });
});

describe("a plan whose parts contradict each other is rejected", () => {
  it.each<[string, (edited: TestPlan) => void, string]>([
    [
      "without the change of a planned resource",
      (edited) => edited.resource_changes.splice(0, 1),
      "gatehouse_public_key.ana: planned_values contains it, but resource_changes does not",
    ],
    [
      "with another action",
      (edited) => Object.assign(changeIn(edited).change, { actions: ["no-op"] }),
      "gatehouse_public_key.ana: the action is no-op, but change.before and change.after differ",
    ],
    [
      "with a create of an existing object",
      (edited) => Object.assign(changeIn(edited).change, { actions: ["create"] }),
      "gatehouse_public_key.ana: the action create must not have values in change.before",
    ],
    [
      "with a delete that keeps values",
      (edited) => Object.assign(changeIn(edited).change, { actions: ["delete"] }),
      "gatehouse_public_key.ana: the action delete must not have values in change.after",
    ],
    [
      "with a delete of nothing",
      (edited) => Object.assign(changeIn(edited).change, { actions: ["delete"], before: null, after: null }),
      "gatehouse_public_key.ana: the action delete needs values in change.before",
    ],
    [
      "with an update to nothing",
      (edited) => Object.assign(changeIn(edited).change, { after: null }),
      "gatehouse_public_key.ana: the action update needs values in change.after",
    ],
    [
      "with two changes of an object",
      (edited) => edited.resource_changes.push(changeIn(edited)),
      "gatehouse_public_key.ana: resource_changes contains the object twice",
    ],
    [
      "with other planned values",
      (edited) => Object.assign(changeIn(edited).change.after ?? {}, { username: "^ben$" }),
      "gatehouse_public_key.ana: username differs between change.after and planned_values",
    ],
    [
      "with other values in the state",
      (edited) => Object.assign(changeIn(edited).change.before ?? {}, { username: "^ben$" }),
      "gatehouse_public_key.ana: username differs between change.before and prior_state",
    ],
    [
      "with another id after an update",
      (edited) => Object.assign(changeIn(edited).change.after ?? {}, { id: `${TENANT}/x` }),
      "gatehouse_public_key.ana: the action is update, but id differs between change.before and change.after",
    ],
    [
      "with the namespace of another object",
      (edited) => {
        for (const row of [changeIn(edited).change.before, changeIn(edited).change.after])
          Object.assign(row ?? {}, { tenant: TENANT });
      },
      "gatehouse_public_key.ana: change.before.id is in another namespace than change.before.tenant",
    ],
    [
      "with another type in the address",
      (edited) => Object.assign(changeIn(edited), { type: "gatehouse_tag" }),
      "gatehouse_public_key.ana: its type is gatehouse_tag, but its address has another type",
    ],
    [
      "with the mode of a data source",
      (edited) => Object.assign(changeIn(edited), { mode: "data" }),
      "gatehouse_public_key.ana: its mode is data, but its address has another mode",
    ],
    [
      "without the block of a resource",
      (edited) => edited.configuration.root_module.resources.splice(0, 1),
      "gatehouse_public_key.ana: the configuration does not contain it",
    ],
    [
      "with a provider block of another provider",
      (edited) => Object.assign(edited.configuration.provider_config.gatehouse ?? {}, { full_name: "a/b/c" }),
      "gatehouse_public_key.ana: its provider block gatehouse belongs to another provider",
    ],
    [
      "with a provider block that the plan does not contain",
      (edited) =>
        Object.assign(edited.configuration.root_module.resources[0] ?? {}, { provider_config_key: "b" }),
      "gatehouse_public_key.ana: the configuration does not contain its provider block b",
    ],
    [
      "with changes that cannot be applied",
      (edited) => Object.assign(edited, { applyable: false }),
      "resource_changes contains changes, but applyable is false",
    ],
    [
      "without the changes to apply",
      (edited) => Object.assign(edited, { applyable: true, resource_changes: [], planned_values: {} }),
      "applyable is true, but the plan contains no change",
    ],
    [
      "without the change of an object, although it is complete",
      (edited) => Object.assign(edited, { complete: true }),
      "gatehouse_public_key.ben: prior_state contains it, but resource_changes does not",
    ],
    [
      "with a value that is marked as unknown",
      (edited) => Object.assign(changeIn(edited).change, { after_unknown: { username: true } }),
      "gatehouse_public_key.ana: change.after.username has a value, but is marked as unknown",
    ],
    [
      "with a mark on the whole resource",
      (edited) => Object.assign(changeIn(edited).change, { after_unknown: true }),
      "gatehouse_public_key.ana: change.after_unknown must have the form of change.after",
    ],
  ])("%s", (_how, edit, problem) => {
    const edited = recorded("exclude");
    edit(edited);
    expect(() => read(edited)).toThrow(EngineError);
    expect(() => read(edited)).toThrow(problem);
  });

  it.each<[string, unknown, string]>([
    ["filter", null, "change.after.filter is missing"],
    ["filter", "all", "change.after.filter must have the type object"],
    ["filter", { hostname: null, tags: null }, "change.after.filter is invalid"],
    ["filter", { hostname: 7, tags: null }, "change.after.filter must have the type object"],
    ["data", "ssh-ed25519 garbage", "change.after.data is invalid"],
    ["username", 7, "change.after.username must have the type string"],
    ["username", "(", "change.after.username is invalid for this version of gatehouse"],
    ["tenant", "garbage", "change.after.tenant is invalid"],
  ])("with the value of %s: %j", (name, value, problem) => {
    const edited = recorded("exclude");
    plan(edited, name, value);
    if (name === "tenant") delete changeIn(edited).change.after?.id;
    if (name === "tenant") delete changeIn(edited).change.before?.id;
    if (name === "tenant") Object.assign(edited, { prior_state: {} });
    expect(() => read(edited)).toThrow(`gatehouse_public_key.ana: ${problem}`);
  });

  it("if the plan contains no value of an argument, and does not mark it as unknown", () => {
    const edited = recorded("exclude");
    delete edited.planned_values.root_module;
    delete changeIn(edited).change.after?.username;
    expect(() => read(edited)).toThrow("change.after.username is missing, and is not marked as unknown");
  });

  it("if an argument is unknown that the configuration does not set", () => {
    const edited = recorded("exclude");
    delete edited.planned_values.root_module;
    delete changeIn(edited).change.after?.username;
    changeIn(edited).change.after_unknown = { username: true };
    delete edited.configuration.root_module.resources[0]?.expressions.username;
    expect(() => read(edited)).toThrow("change.after.username is marked as unknown, but the configuration");
  });
});
