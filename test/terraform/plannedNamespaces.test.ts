import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { onService, stepsOf } from "../../provider/plan/steps.ts";
import { configurationFacts } from "../../provider/plan/terraform/configurationFacts.ts";
import { readTerraformPlan } from "../../provider/plan/terraform/readTerraformPlan.ts";
import { SOURCE } from "../../provider/terraform/source.ts";
import { workspaceIn } from "../../provider/terraform/workspace.ts";
import { testFolder } from "../support/folder.ts";
import { gatehouse } from "../support/gatehouse.ts";
import { hasTerraform, keyArguments, LABEL, ref, resources, sharedTerraform } from "./support/terraform.ts";

const URL = "https://access.example.org";
const B = "00000000-0000-4000-8000-00000000000b";
const C = "00000000-0000-4000-8000-00000000000c";
const SERVED = `registry.terraform.io/${SOURCE}`;

type Json = Readonly<Record<string, unknown>>;

const variable = { references: ["var.tenant"] };

/** A resource of a test plan: its address, its provider block, and its change. */
interface TestResource {
  readonly address?: string;
  readonly key?: string;
  readonly expressions?: Json;
  readonly change: Json;
}

const creates = (tenant: string) => ({ actions: ["create"], after: { name: "root", tenant } });

/** The parts of a test plan. The variable `tenant` has the value C. */
interface TestPlan {
  /** The expressions of the provider blocks, by key. */
  readonly blocks: Readonly<Record<string, Json>>;
  readonly resources: readonly TestResource[];
  /** The configuration in HCL. */
  readonly files?: string;
}

function read({ blocks, resources, files = "" }: TestPlan) {
  const folder = testFolder();
  writeFileSync(join(folder, "main.tf"), files);
  const named = resources.map(({ address = "gatehouse_tag.a", ...rest }) => ({ address, ...rest }));
  const configured = named.map(({ address, key = "gatehouse", expressions = {} }) => ({
    address: address.split(".").slice(-2).join(".").replace(/\[.*$/, ""),
    type: "gatehouse_tag",
    provider_config_key: key,
    expressions: { name: { constant_value: "root" }, ...expressions },
  }));
  const inModule = named.map(({ address }) => address.startsWith("module."));
  const root = {
    resources: configured.filter((_one, index) => !inModule[index]),
    module_calls: { a: { module: { resources: configured.filter((_one, index) => inModule[index]) } } },
  };
  const plan = {
    format_version: "1.2",
    planned_values: {},
    variables: { tenant: { value: C } },
    resource_changes: named.map(({ address, change }) => ({
      address,
      type: "gatehouse_tag",
      provider_name: SERVED,
      change,
    })),
    configuration: {
      provider_config: Object.fromEntries(
        Object.entries(blocks).map(([key, expressions]) => [
          key,
          { full_name: SERVED, expressions, ...(key.includes(".") && { alias: key.split(".")[1] }) },
        ]),
      ),
      root_module: root,
    },
  };
  const origin = {
    name: "a plan",
    workspace: workspaceIn(folder, {}),
    isInPlan: () => true,
    isSettingAlone: (key: string, setting: string, variable: string) =>
      setting === "url" ||
      (setting === "tenant" && configurationFacts(folder).isSettingAlone(key, setting, variable)),
  };
  const { plan: result, settings, notEvaluated } = readTerraformPlan(JSON.stringify(plan), origin);
  const local = onService(result, URL).plan;
  const inTenant = (tenant: string) => stepsOf(local, tenant, C).steps.map(({ step }) => step.name);
  return { tenant: settings.get("gatehouse:tenant"), notEvaluated, b: inTenant(B), c: inTenant(C) };
}

const hcl = (expression: string) => `provider "gatehouse" {\n  tenant = ${expression}\n}\n`;

describe("a change in one namespace", () => {
  it.each<[string, TestPlan]>([
    [
      "a condition on a variable",
      {
        blocks: { gatehouse: { tenant: variable } },
        files: hcl(`var.tenant == "" ? "" : "${B}"`),
        resources: [{ change: creates(B) }],
      },
    ],
    [
      "a call with a variable",
      {
        blocks: { gatehouse: { tenant: variable } },
        files: hcl(`replace(var.tenant, "c", "b")`),
        resources: [{ change: creates(B) }],
      },
    ],
    [
      "an alias",
      {
        blocks: { gatehouse: { tenant: { constant_value: C } }, "gatehouse.b": { tenant: variable } },
        resources: [{ key: "gatehouse.b", change: creates(B) }],
      },
    ],
    [
      "the block of a module",
      {
        blocks: { gatehouse: { tenant: { constant_value: C } }, "module.a:gatehouse": { tenant: variable } },
        resources: [{ address: "module.a.gatehouse_tag.a", key: "module.a:gatehouse", change: creates(B) }],
      },
    ],
    [
      "a block with for_each",
      {
        blocks: { "gatehouse.each": { tenant: { references: ["each.value"] } } },
        resources: [
          { address: 'gatehouse_tag.a["b"]', key: "gatehouse.each", change: creates(B) },
          { address: 'gatehouse_tag.a["c"]', key: "gatehouse.each", change: creates(C) },
        ],
      },
    ],
    [
      "the argument of the resource",
      {
        blocks: { gatehouse: { tenant: { constant_value: C } } },
        resources: [{ expressions: { tenant: { constant_value: B } }, change: creates(B) }],
      },
    ],
    ["the environment of the plan", { blocks: {}, resources: [{ change: creates(B) }] }],
    [
      "a constant that the plan contradicts",
      { blocks: { gatehouse: { tenant: { constant_value: C } } }, resources: [{ change: creates(B) }] },
    ],
  ])("is in the review of that namespace if the namespace comes from %s", (_way, plan) => {
    const { b, c, notEvaluated } = read(plan);
    expect(b).toHaveLength(1);
    expect(c).toHaveLength(plan.resources.length - 1);
    expect(notEvaluated).toEqual([]);
  });
});

describe("the default namespace of a plan", () => {
  const conditional = hcl(`var.tenant == "" ? "" : "${B}"`);
  const block = { gatehouse: { tenant: variable } };

  it("is the one of the planned resources, even if the expression has a different value", () => {
    const resources = [{ change: creates(B) }];
    expect(read({ blocks: block, files: conditional, resources }).tenant).toBe(B);
    expect(read({ blocks: block, files: hcl("var.tenant"), resources }).tenant).toBe(B);
    expect(read({ blocks: { gatehouse: { tenant: { constant_value: C } } }, resources }).tenant).toBe(B);
    expect(read({ blocks: {}, resources }).tenant).toBe(B);
  });

  it("is the value of the expression without planned resources, only for a constant or exactly a variable", () => {
    expect(read({ blocks: block, files: hcl("var.tenant"), resources: [] }).tenant).toBe(C);
    const constant = { gatehouse: { tenant: { constant_value: C } } };
    expect(read({ blocks: constant, resources: [] }).tenant).toBe(C);
    for (const expression of [
      `var.tenant == "" ? "" : "${B}"`,
      'replace(var.tenant, "c", "b")',
      "(var.tenant)",
    ]) {
      const unknown = read({ blocks: block, files: hcl(expression), resources: [] });
      expect(unknown, expression).toMatchObject({
        tenant: undefined,
        notEvaluated: [expect.stringContaining("provider gatehouse: tenant is unknown in the plan")],
      });
    }
  });

  it("does not come from resources with an own namespace, nor from removed ones", () => {
    const own = { expressions: { tenant: { constant_value: B } }, change: creates(B) };
    const removed = { change: { actions: ["delete"], before: { name: "root", tenant: B }, after: null } };
    for (const resource of [own, removed])
      expect(read({ blocks: block, files: hcl("var.tenant"), resources: [resource] }).tenant).toBe(C);
  });

  it("is unknown if the namespace of a planned resource is unknown", () => {
    const change = { actions: ["create"], after: { name: "root" }, after_unknown: { tenant: true } };
    expect(read({ blocks: block, files: conditional, resources: [{ change }] })).toMatchObject({
      tenant: undefined,
      notEvaluated: [expect.stringContaining("tenant is unknown in the plan")],
    });
    expect(read({ blocks: {}, resources: [{ change }] }).notEvaluated).toEqual([]);
  });
});

describe.runIf(hasTerraform)(`a plan of ${LABEL} for another namespace than GATEHOUSE_TENANT`, () => {
  const fleet = sharedTerraform();
  let second: string;
  beforeAll(async () => {
    second = (await fleet.client.createNamespace({ body: { name: "second" } })).tenantId;
    await fleet.enroll("edge-02", "02:00:00:00:0b:01", second);
  });

  it.each<[string, (tenant: string) => string]>([
    ["a condition", (tenant) => ref(`var.tenant == "" ? "" : "${tenant}"`)],
    ["a call", (tenant) => ref(`replace(var.tenant, "/^.*$/", "${tenant}")`)],
  ])("is reviewed in that namespace with %s", async (_way, expression) => {
    const root = fleet.newModule();
    root.write({
      variable: { tenant: { default: fleet.tenant } },
      provider: { gatehouse: { tenant: expression(second) } },
      ...resources({ public_key: { ana: keyArguments() } }),
    });
    const file = await root.planFile();
    const { stdout } = await gatehouse(["review", root.folder, "--terraform", file, "--json"], fleet.env);
    const { namespaces, notEvaluated } = JSON.parse(stdout);
    expect(notEvaluated).toEqual([]);
    const gained = namespaces.map(({ tenant, access }: { tenant: string; access: readonly unknown[] }) => [
      tenant,
      access.length,
    ]);
    expect(gained).toEqual([
      [fleet.tenant, 0],
      [second, 1],
    ]);
  });
});
