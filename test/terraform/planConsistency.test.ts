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

const ORIGIN = {
  name: "plan.json",
  workspace: { project: "fleet", stack: "default" },
  isSettingAlone: () => true,
  isInPlan: () => true,
};

const read = (plan: unknown) => readTerraformPlan(JSON.stringify(plan), ORIGIN);

type Edit = (edited: TestPlan) => unknown;

/** Returns an edit of the first change in the plan. */
const change =
  (...values: readonly Partial<TestChange["change"]>[]): Edit =>
  (edited) =>
    Object.assign(changeIn(edited).change, ...values);
/** Returns an edit of the resource in the first change, such as its type. */
const resource =
  (values: Partial<TestChange>): Edit =>
  (edited) =>
    Object.assign(changeIn(edited), values);
/** Returns an edit of the values before or after the first change. */
const row =
  (side: "before" | "after", values: Values): Edit =>
  (edited) =>
    Object.assign(changeIn(edited).change[side] ?? {}, values);
const ANA = "gatehouse_public_key.ana";

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
  it.each<[string, Edit]>([
    [
      "gatehouse_quantum_key.a: not evaluated, since this version does not know the resource type gatehouse_quantum_key",
      resource({ type: "gatehouse_quantum_key", address: "gatehouse_quantum_key.a" }),
    ],
    [
      "gh_key.a: not evaluated, since this version does not know the resource type gh_key",
      resource({ type: "gh_key", address: "gh_key.a" }),
    ],
    [
      `${ANA}: not evaluated, since this version does not know the action transfer`,
      change({ actions: ["transfer"] }),
    ],
    [
      `${ANA}: not evaluated, since this version does not know the action update and delete`,
      change({ actions: ["update", "delete"] }),
    ],
    [`${ANA}: not evaluated, since its change has no action`, change({ actions: [] })],
    [
      `${ANA}: not evaluated, since this version does not know the mode "Managed"`,
      resource({ mode: "Managed" }),
    ],
  ])("reports %s", (sentence, edit) => {
    const edited = recorded("forget");
    edit(edited);
    edited.planned_values = {};
    edited.prior_state.values.root_module.resources.shift();
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
    const failed = { format_version: "1.2", errored: true, planned_values: {}, configuration };
    expect(read(failed).notEvaluated).toEqual(["the plan is incomplete, since its run failed"]);
  });
});

describe("a plan whose parts contradict each other is rejected", () => {
  it.each<[string, Edit]>([
    [
      `${ANA}: planned_values contains it, but resource_changes does not`,
      (edited) => edited.resource_changes.shift(),
    ],
    [
      `${ANA}: the action is no-op, but change.before and change.after differ`,
      change({ actions: ["no-op"] }),
    ],
    [`${ANA}: the action create must not have values in change.before`, change({ actions: ["create"] })],
    [`${ANA}: the action delete must not have values in change.after`, change({ actions: ["delete"] })],
    [
      `${ANA}: the action delete needs values in change.before`,
      change({ actions: ["delete"], before: null, after: null }),
    ],
    [`${ANA}: the action update needs values in change.after`, change({ after: null })],
    [
      `${ANA}: resource_changes contains the object twice`,
      (edited) => edited.resource_changes.push(changeIn(edited)),
    ],
    [`${ANA}: username differs between change.after and planned_values`, row("after", { username: "^ben$" })],
    [`${ANA}: username differs between change.before and prior_state`, row("before", { username: "^ben$" })],
    [
      `${ANA}: the action is update, but id differs between change.before and change.after`,
      row("after", { id: `${TENANT}/x` }),
    ],
    [
      `${ANA}: change.before.id is in another namespace than change.before.tenant`,
      (edited) => {
        row("before", { tenant: TENANT })(edited);
        row("after", { tenant: TENANT })(edited);
      },
    ],
    [
      `${ANA}: its type is gatehouse_tag, but its address has a different type`,
      resource({ type: "gatehouse_tag" }),
    ],
    [`${ANA}: its mode is data, but its address has another mode`, resource({ mode: "data" })],
    [
      `${ANA}: the configuration does not contain it`,
      (edited) => edited.configuration.root_module.resources.shift(),
    ],
    [
      `${ANA}: its provider block gatehouse belongs to another provider`,
      (edited) => Object.assign(edited.configuration.provider_config.gatehouse ?? {}, { full_name: "a/b/c" }),
    ],
    [
      `${ANA}: the configuration does not contain its provider block b`,
      ({ configuration }) =>
        Object.assign(configuration.root_module.resources[0] ?? {}, { provider_config_key: "b" }),
    ],
    [
      "resource_changes contains changes, but applyable is false",
      (edited) => Object.assign(edited, { applyable: false }),
    ],
    [
      "applyable is true, but the plan contains no change",
      (edited) => Object.assign(edited, { applyable: true, resource_changes: [], planned_values: {} }),
    ],
    [
      "gatehouse_public_key.ben: prior_state contains it, but resource_changes does not",
      (edited) => Object.assign(edited, { complete: true }),
    ],
    [
      `${ANA}: change.after.username has a value, but is marked as unknown`,
      change({ after_unknown: { username: true } }),
    ],
    [`${ANA}: change.after_unknown must have the form of change.after`, change({ after_unknown: true })],
  ])("because of %s", (problem, edit) => {
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
