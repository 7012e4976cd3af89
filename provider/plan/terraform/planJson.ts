import { parseJson } from "@gatehouse-access/sdk/json";
import { z } from "zod";
import { EngineError } from "../../engine/index.ts";

const values = z.record(z.string(), z.unknown());

/** Which values are sensitive: `true`, or the fields and items that are. */
const mask = z.unknown().optional();

const resourceChange = z.looseObject({
  address: z.string(),
  /** Where it was, if it is moved. */
  previous_address: z.string().optional(),
  mode: z.string().default("managed"),
  type: z.string(),
  /** The whole source of its provider: `registry.terraform.io/gatehouse-access/gatehouse`. */
  provider_name: z.string().optional(),
  action_reason: z.string().optional(),
  change: z.looseObject({
    actions: z.array(z.string()),
    before: values.nullable().default(null),
    after: values.nullable().default(null),
    after_unknown: z.union([values, z.boolean()]).default({}),
    before_sensitive: mask,
    after_sensitive: mask,
    replace_paths: z.array(z.array(z.unknown())).default([]),
    importing: z.looseObject({}).nullish(),
  }),
});

/** A change that Terraform puts off to a later plan. */
const deferredChange = z.looseObject({ reason: z.string().optional(), resource_change: resourceChange });

/** A resource that a plan speaks of. */
export type ResourceChange = z.output<typeof resourceChange>;

/** What a configuration gives for an argument. */
export const expression = z.looseObject({
  constant_value: z.unknown().optional(),
  references: z.array(z.string()).optional(),
});

const configuredResource = z.looseObject({
  address: z.string(),
  type: z.string().default(""),
  provider_config_key: z.string().optional(),
  expressions: values.default({}),
});

/** A resource of a configuration. */
export type ConfiguredResource = z.output<typeof configuredResource>;

const moduleConfiguration = z.looseObject({
  resources: z.array(configuredResource).default([]),
  get module_calls() {
    return z.record(z.string(), z.looseObject({ module: moduleConfiguration.optional() })).default({});
  },
});

const stateModule = z.looseObject({
  resources: z
    .array(
      z.looseObject({
        address: z.string(),
        mode: z.string().default("managed"),
        type: z.string(),
        provider_name: z.string().optional(),
        values: values.default({}),
      }),
    )
    .default([]),
  get child_modules() {
    return z.array(stateModule).default([]);
  },
});

type StateModule = z.output<typeof stateModule>;

const planJson = z.looseObject({
  format_version: z.string().regex(/^1\./, { error: "must be 1.x: another Terraform wrote this" }),
  resource_changes: z.array(resourceChange).default([]),
  resource_drift: z.array(resourceChange).default([]),
  deferred_changes: z.array(deferredChange).default([]),
  /** True for the plan of a run that failed. */
  errored: z.boolean().default(false),
  planned_values: z.looseObject({}),
  output_changes: z
    .record(
      z.string(),
      z.looseObject({
        actions: z.array(z.string()),
        before: z.unknown().optional(),
        after: z.unknown().optional(),
        before_sensitive: mask,
        after_sensitive: mask,
      }),
    )
    .default({}),
  /** What is to be done beside resources: actions of providers. */
  action_invocations: z.array(z.unknown()).default([]),
  prior_state: z
    .looseObject({ values: z.looseObject({ root_module: stateModule.optional() }).optional() })
    .optional(),
  variables: z.record(z.string(), z.looseObject({ value: z.unknown().optional() })).default({}),
  configuration: z.looseObject({
    provider_config: z
      .record(
        z.string(),
        z.looseObject({
          /** The whole source; the name is what the configuration calls it. */
          full_name: z.string().optional(),
          alias: z.string().optional(),
          expressions: z.record(z.string(), z.unknown()).default({}),
        }),
      )
      .default({}),
    root_module: moduleConfiguration.optional(),
  }),
});

/** A plan in JSON. */
export type PlanJson = z.output<typeof planJson>;

/** What else Terraform and OpenTofu write as JSON, by a member that no plan has. */
const OTHER_OUTPUTS = [
  { member: "values", what: "a state" },
  { member: "provider_schemas", what: "the schemas of providers" },
  { member: "encrypted_data", what: "an encrypted file of OpenTofu" },
] as const;

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;

/**
 * The plan in a text that `terraform show -json` wrote.
 * @param name what errors call it
 * @throws EngineError (`plan_file`) where it is none
 */
export function parsePlan(text: string, name: string): PlanJson {
  const how = "write it by: terraform show -json FILE > plan.json (or tofu show)";
  if (text.startsWith("PK")) {
    throw new EngineError(
      "plan_file",
      `${name} is a saved plan, which only Terraform or OpenTofu can read; ${how}`,
    );
  }
  let parsed: unknown;
  try {
    parsed = parseJson(text);
  } catch (cause) {
    throw new EngineError("plan_file", `${name} is no plan in JSON; ${how}`, { cause });
  }
  const other = OTHER_OUTPUTS.find(({ member }) => isObject(parsed) && member in parsed);
  if (other) throw new EngineError("plan_file", `${name} is ${other.what}, and no plan; ${how}`);
  const result = planJson.safeParse(parsed);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const where = issue?.path.map(String).join(".") ?? "";
  throw new EngineError(
    "plan_file",
    `${name} is no plan of Terraform or OpenTofu: ${where} ${issue?.message}; ${how}`,
  );
}

/**
 * Resources that the plan does not speak of, as one that only refreshes, or that is limited to targets: they stay as they
 * are; and what somebody changed is declared as the state had it.
 */
export function unspoken({
  prior_state: state,
  resource_changes: changes,
  resource_drift: drift,
}: PlanJson): ResourceChange[] {
  const told = new Set(changes.map(({ address }) => address));
  const drifted = drift.filter(({ address }) => !told.has(address));
  const restored = drifted.map(({ change, ...resource }) => ({
    ...resource,
    change: {
      ...NO_CHANGE,
      actions: [change.after ? "update" : "create"],
      before: change.after,
      after: change.before,
    },
  }));
  for (const { address } of drifted) told.add(address);
  const same = resourcesIn(state?.values?.root_module)
    .filter(({ address }) => !told.has(address))
    .map(({ values, ...resource }) => ({
      ...resource,
      change: { ...NO_CHANGE, before: values, after: values },
    }));
  return [...restored, ...same];
}

const NO_CHANGE = { actions: ["no-op"], after_unknown: {}, replace_paths: [] };

const resourcesIn = (module: StateModule | undefined): StateModule["resources"] =>
  module ? [...module.resources, ...module.child_modules.flatMap(resourcesIn)] : [];

/** All resources of a configuration, by their addresses without the keys of `count` and `for_each`. */
export const configuredResources = (json: PlanJson): ReadonlyMap<string, ConfiguredResource> =>
  new Map(configuredIn(json.configuration.root_module, ""));

function configuredIn(
  module: z.output<typeof moduleConfiguration> | undefined,
  path: string,
): (readonly [string, ConfiguredResource])[] {
  if (!module) return [];
  return [
    ...module.resources.map((resource) => [`${path}${resource.address}`, resource] as const),
    ...Object.entries(module.module_calls).flatMap(([name, call]) =>
      configuredIn(call.module, `${path}module.${name}.`),
    ),
  ];
}
