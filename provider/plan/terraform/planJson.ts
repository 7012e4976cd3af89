import { issueText } from "@gatehouse-access/sdk/contract";
import { parseJson } from "@gatehouse-access/sdk/json";
import { z } from "zod";
import { EngineError } from "../../engine/index.ts";

const values = z.record(z.string(), z.unknown());

/**
 * The sensitivity marks of a value in a plan: `true` if the whole value is sensitive, otherwise an object or a list
 * with the marks of its fields or items.
 */
const mask = z.unknown().optional();

const resourceChange = z.looseObject({
  address: z.string(),
  previous_address: z.string().optional(),
  /** The key of a deposed object: an old object that a replacement has not deleted yet. */
  deposed: z.string().optional(),
  mode: z.string().default("managed"),
  type: z.string(),
  /** The full source address of the provider: `registry.terraform.io/gatehouse-access/gatehouse`. */
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

const deferredChange = z.looseObject({ reason: z.string().optional(), resource_change: resourceChange });

/** A planned change to one resource. */
export type ResourceChange = z.output<typeof resourceChange>;

/** An expression of the configuration: a constant, or references. */
export const expression = z.looseObject({
  constant_value: z.unknown().optional(),
  references: z.array(z.string()).optional(),
});

const configuredResource = z.looseObject({
  address: z.string(),
  type: z.string().default(""),
  provider_config_key: z.string().optional(),
  expressions: values.default({}),
  depends_on: z.array(z.string()).optional(),
});

/** A resource block of the configuration. */
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
        /** The key of a deposed object: an old object that a replacement has not deleted yet. */
        deposed_key: z.string().optional(),
        /** The values of the resource. In the planned values, a resource that the plan forgets has no values. */
        values: values.default({}),
      }),
    )
    .default([]),
  get child_modules() {
    return z.array(stateModule).default([]);
  },
});

type StateModule = z.output<typeof stateModule>;

/** A resource in the planned values or in the prior state. */
export type StateResource = StateModule["resources"][number];

const planJson = z.looseObject({
  format_version: z.string().regex(/^1\./, { error: "must be 1.x; this plan has an unsupported format" }),
  resource_changes: z.array(resourceChange).default([]),
  resource_drift: z.array(resourceChange).default([]),
  deferred_changes: z.array(deferredChange).default([]),
  errored: z.boolean().default(false),
  /** True if an apply would change something. Omitted in plans of OpenTofu. */
  applyable: z.boolean().optional(),
  /** False if a further plan is needed, for example after `-target`. Omitted in plans of OpenTofu. */
  complete: z.boolean().optional(),
  planned_values: z.looseObject({ root_module: stateModule.optional() }),
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
          full_name: z.string().optional(),
          alias: z.string().optional(),
          expressions: z.record(z.string(), z.unknown()).default({}),
        }),
      )
      .default({}),
    root_module: moduleConfiguration.optional(),
  }),
});

/** A plan of Terraform or OpenTofu as JSON. */
export type PlanJson = z.output<typeof planJson>;

/**
 * JSON output of Terraform and OpenTofu that is not a plan. Each kind of output has a top-level property that plans do
 * not have.
 */
const OTHER_OUTPUTS = [
  { member: "values", what: "a state" },
  { member: "provider_schemas", what: "the schemas of providers" },
  { member: "encrypted_data", what: "an encrypted file of OpenTofu" },
] as const;

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;

/**
 * Parses the output of `terraform show -json`.
 * @param name name of the plan in errors
 * @throws EngineError (`plan_file`) if the text is not a plan
 */
export function parsePlan(text: string, name: string): PlanJson {
  const invalid = (problem: string, cause?: unknown) => {
    const remedy = "Create the file with: terraform show -json FILE > plan.json (or tofu show)";
    return new EngineError("plan_file", `Cannot read ${name}: it is ${problem}. ${remedy}`, { cause });
  };
  if (text.startsWith("PK")) {
    throw invalid("a saved plan, which only Terraform or OpenTofu can read");
  }
  let parsed: unknown;
  try {
    parsed = parseJson(text);
  } catch (cause) {
    throw invalid("not JSON", cause);
  }
  const other = OTHER_OUTPUTS.find(({ member }) => isObject(parsed) && member in parsed);
  if (other) throw invalid(`${other.what}, not a plan`);
  const result = planJson.safeParse(parsed, { error: issueText });
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const where = issue?.path.map(String).join(".") ?? "";
  throw invalid(`not a plan of Terraform or OpenTofu: ${where} ${issue?.message}`);
}

/**
 * Returns a change for each resource that a plan with `-refresh-only` or `-target` omits. If a resource has drifted,
 * its change restores the values from before the drift. Otherwise its change has no effect.
 */
export function omittedResources({
  prior_state: state,
  resource_changes: changes,
  resource_drift: drift,
}: PlanJson): ResourceChange[] {
  const listed = new Set(changes.map(({ address }) => address));
  const drifted = drift.filter(({ address }) => !listed.has(address));
  const restored = drifted.map(({ change, ...resource }) => ({
    ...resource,
    change: {
      ...NO_CHANGE,
      actions: [change.after ? "update" : "create"],
      before: change.after,
      after: change.before,
    },
  }));
  for (const { address } of drifted) listed.add(address);
  // A plan does not list the data sources that were already read.
  const same = stateResources(state?.values?.root_module)
    .filter(({ address, mode }) => mode !== "data" && !listed.has(address))
    .map(({ values, ...resource }) => ({
      ...resource,
      change: { ...NO_CHANGE, before: values, after: values },
    }));
  return [...restored, ...same];
}

/**
 * Returns true if a plan covers only a part of the configuration, as with `-target` and `-exclude`. A plan with
 * `-refresh-only` contains no changes, and is not partial.
 */
export const isPartial = (json: PlanJson): boolean =>
  json.complete === false || (json.resource_changes.length > 0 && omittedResources(json).length > 0);

const NO_CHANGE = { actions: ["no-op"], after_unknown: {}, replace_paths: [] };

/** Returns the resources of a module and of its child modules. */
export const stateResources = (module: StateModule | undefined): StateResource[] =>
  module ? [...module.resources, ...module.child_modules.flatMap(stateResources)] : [];

/**
 * Returns a key that identifies an object of a plan: the address, and the deposed key if the object is deposed. A
 * deposed object is an old object that a replacement has not deleted yet.
 */
export const objectKey = (object: ResourceChange | StateResource): string =>
  `${object.address} ${deposedKey(object) ?? ""}`;

/** Returns the name of an object for messages. */
export const titleOf = (object: ResourceChange | StateResource): string => {
  const deposed = deposedKey(object);
  return deposed === undefined ? object.address : `${object.address} (deposed ${deposed})`;
};

function deposedKey(object: ResourceChange | StateResource): string | undefined {
  const key = "change" in object ? object.deposed : object.deposed_key;
  return typeof key === "string" ? key : undefined;
}

/** Returns an address without keys: `module.a["x"].gatehouse_tag.b[0]` becomes `module.a.gatehouse_tag.b`. */
export const withoutKeys = (address: string): string =>
  address.replaceAll(/\[(?:\d+|"(?:[^"\\]|\\.)*")\]/g, "");

/** The resource blocks of a configuration, by address. The addresses omit the keys of `count` and `for_each`. */
export type Blocks = ReadonlyMap<string, ConfiguredResource>;

/** Returns the resource blocks of a plan's configuration. */
export const configuredResources = (json: PlanJson): Blocks =>
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
