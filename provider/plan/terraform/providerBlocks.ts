import { tenantId } from "@gatehouse-access/sdk/contract";
import type { ResourceValues } from "../../engine/index.ts";
import { UNKNOWN } from "../../engineMarks.ts";
import { CREDENTIAL_SETTINGS } from "../../service/newConnection.ts";
import { isOwnSource } from "../../terraform/source.ts";
import { terraformName } from "../../terraform/types.ts";
import { type ConfiguredResource, expression, type PlanJson } from "./planJson.ts";

/** The prefix of resource types. Terraform uses this prefix as the default local name of the provider. */
const DEFAULT_KEY = "gatehouse";

type Block = PlanJson["configuration"]["provider_config"][string];

/** Returns the provider block for a key of a plan: `gh`, `gh.alias`, or `module.a:gh` for a module's own block. */
const blockOf = ({ configuration: { provider_config: all } }: PlanJson, key: string): Block | undefined =>
  all[key] ?? all[key.split(":").at(-1) ?? ""];

/** True if the provider block for a key configures the Gatehouse provider, under any local name. */
export function isOwnBlock(json: PlanJson, key: string): boolean {
  const source = blockOf(json, key)?.full_name;
  return source === undefined ? key.split(":").at(-1)?.split(".")[0] === DEFAULT_KEY : isOwnSource(source);
}

/**
 * For each setting: a phrase for the report if the setting is unknown, and the environment variable. The phrase states
 * where the resources may be.
 */
const SETTINGS = {
  url: { place: "on another service", variable: "GATEHOUSE_URL" },
  tenant: { place: "in another namespace", variable: "GATEHOUSE_TENANT" },
  project: { place: "declared by another project", variable: "GATEHOUSE_PROJECT" },
} as const;

const CREDENTIAL_ATTRIBUTES = CREDENTIAL_SETTINGS.map(terraformName);

type Name = keyof typeof SETTINGS;
type Settings = Readonly<Record<Name, unknown>>;

interface PlannedTenant {
  readonly resource: ConfiguredResource | undefined;
  readonly tenant: unknown;
}

/** Facts about a root module that the files of the module contain and the plan does not contain. */
export interface ConfigurationFacts {
  /** True if the provider block with this key sets `url` to exactly this variable. */
  readonly isUrlAlone: (key: string, variable: string) => boolean;
  /**
   * True if the provider block with this key sets `project` to exactly this variable.
   * @default false
   */
  readonly isProjectAlone?: (key: string, variable: string) => boolean;
  /** True if the plan contains the value that Terraform used for this variable when it created the plan. */
  readonly isInPlan: (variable: string) => boolean;
}

/** The provider blocks of a plan: their services and namespaces, if the plan contains them. */
export class ProviderBlocks {
  readonly #json: PlanJson;
  readonly #facts: ConfigurationFacts;
  readonly #tenants: readonly PlannedTenant[];
  /** The keys of this provider's blocks that are in use, default blocks first. */
  readonly #keys: readonly string[];
  /** The key of the root module's block without an alias; undefined if the module has no such block, or several. */
  readonly #default: string | undefined;
  readonly #settings = new Map<string, Settings>();

  /**
   * Finds the provider blocks of a plan.
   * @param own the resources of this provider
   * @param tenants the planned namespaces of resources that get their namespace from a block
   */
  constructor(
    json: PlanJson,
    own: readonly ConfiguredResource[],
    facts: ConfigurationFacts,
    tenants: readonly PlannedTenant[],
  ) {
    this.#json = json;
    this.#facts = facts;
    this.#tenants = tenants;
    const used = own.flatMap(({ provider_config_key: key }) => key ?? []).toSorted();
    // The JSON of a plan has a block for each local name of the provider in any module, even if the configuration has
    // no such block. A block without expressions therefore counts only if a resource uses the block.
    const defaults = Object.entries(json.configuration.provider_config).flatMap(
      ([key, { alias, expressions }]) => {
        const isRoot = !key.includes(":") && alias === undefined && isOwnBlock(json, key);
        return isRoot && (used.includes(key) || Object.keys(expressions).length > 0) ? [key] : [];
      },
    );
    this.#keys = [...new Set([...defaults, ...used])];
    this.#default = defaults.length === 1 ? defaults[0] : undefined;
  }

  /**
   * The known settings of the root module's block without an alias, by keys such as `gatehouse:url`. Without such a
   * block, the settings that all blocks share.
   */
  shared(): ReadonlyMap<string, string> {
    const key = this.#default ?? this.#keys[0] ?? DEFAULT_KEY;
    const settings = Object.entries(this.#of(key)).filter(
      (entry): entry is [Name, string] =>
        typeof entry[1] === "string" &&
        entry[1] !== UNKNOWN &&
        (key === this.#default ||
          this.#keys.every((other) => this.#of(other)[entry[0] as Name] === entry[1])),
    );
    return new Map(settings.map(([name, value]) => [`gatehouse:${name}`, value]));
  }

  /**
   * The `provider` argument with which a resource of the root module gets the {@link shared} settings. Omitted if the
   * default block has these settings.
   */
  named(): { readonly provider?: string } {
    const key = this.#default ?? this.#keys.find((one) => !one.includes(":")) ?? DEFAULT_KEY;
    return key === DEFAULT_KEY ? {} : { provider: key };
  }

  /** Reports settings that are unknown in the plan, as sentences. */
  notEvaluated(): string[] {
    return this.#keys.flatMap((key) =>
      Object.entries(SETTINGS)
        .filter(([name]) => this.#of(key)[name as Name] === UNKNOWN)
        .map(
          ([name, { place, variable }]) =>
            `provider ${key}: ${name} is unknown in the plan, so resources may be ${place}; set ${name} to a literal or a non-ephemeral variable, or set ${variable} instead`,
        ),
    );
  }

  /**
   * The settings of a resource's block: the known address of the service, and a mark if the block has its own
   * credential.
   */
  settingsOf(resource: ConfiguredResource | undefined): ResourceValues["provider"] {
    const key = this.#keyOf(resource);
    const { url } = this.#of(key);
    const block = blockOf(this.#json, key);
    // The key of a module, such as `module.a:gh`, may refer to the root module's block. So the blocks are compared, not
    // the keys.
    const isDefault = this.#default !== undefined && block === blockOf(this.#json, this.#default);
    const isOwn = !isDefault && CREDENTIAL_ATTRIBUTES.some((name) => block && name in block.expressions);
    return {
      ...(typeof url === "string" && url !== UNKNOWN && { url }),
      ...(isOwn && { credential: "[secret]" }),
    };
  }

  #keyOf(resource: ConfiguredResource | undefined): string {
    return resource?.provider_config_key ?? this.#default ?? DEFAULT_KEY;
  }

  #of(key: string): Settings {
    const known = this.#settings.get(key);
    if (known) return known;
    const { expressions = {} } = blockOf(this.#json, key) ?? {};
    const variableOf = (name: string) => {
      // A plan contains only the values of the root module's variables.
      const variable = key.includes(":") ? undefined : this.#json.variables[name];
      return variable && this.#facts.isInPlan(name) ? variable : undefined;
    };
    // A template with other text around the variable, such as `"${var.id}/other"`, would not produce a valid id. So the
    // expression is only the variable if the variable's value is a valid id.
    const isId = (_name: string, value: unknown) => tenantId.safeParse(value).success;
    const tenant = expressionValue(expressions.tenant, variableOf, isId);
    const settings = {
      url: expressionValue(expressions.url, variableOf, (name) => this.#facts.isUrlAlone(key, name)),
      tenant: tenant === UNKNOWN ? this.#plannedTenant(key) : tenant,
      project: expressionValue(
        expressions.project,
        variableOf,
        (name) => this.#facts.isProjectAlone?.(key, name) ?? false,
      ),
    };
    this.#settings.set(key, settings);
    return settings;
  }

  /**
   * The planned namespace of the resources that use a block. The plan contains the namespace of these resources even if
   * the value of the block's expression is unknown. Undefined if the namespace differs between instances of the block
   * (`for_each`).
   */
  #plannedTenant(key: string): unknown {
    const own = this.#tenants.filter(({ resource }) => this.#keyOf(resource) === key);
    const ids = new Set(own.map(({ tenant }) => tenant));
    const isKnown = [...ids].every((id) => id !== UNKNOWN && tenantId.safeParse(id).success);
    if (ids.size === 0 || !isKnown) return UNKNOWN;
    return ids.size === 1 ? [...ids][0] : undefined;
  }
}

/**
 * Returns the value of an expression that is a constant or a variable. The value of any other expression is unknown.
 * Null becomes undefined.
 * @param variableOf returns a variable; undefined if the plan does not contain its value
 * @param isAlone called for an expression that refers only to this variable, with the variable's name and value.
 * Returns true if the expression has no other text: `var.url`, but not `"${var.url}/other"`.
 */
function expressionValue(
  written: unknown,
  variableOf: (variable: string) => PlanJson["variables"][string] | undefined,
  isAlone: (variable: string, value: unknown) => boolean,
): unknown {
  const parsed = expression.safeParse(written);
  if (!parsed.success) return undefined;
  const { constant_value: constant, references = [] } = parsed.data;
  // For a configuration in JSON syntax, a plan contains templates such as `${var.url}` as constants.
  const isTemplate = typeof constant === "string" && /[$%]\{/.test(constant);
  if (constant !== undefined && !isTemplate) return constant;
  const [, name] = (references.length === 1 && /^var\.([\w-]+)$/.exec(references[0] ?? "")) || [];
  const variable = name === undefined ? undefined : variableOf(name);
  if (name === undefined || !variable) return UNKNOWN;
  const isVariable = isTemplate ? constant === `\${var.${name}}` : isAlone(name, variable.value);
  return isVariable ? (variable.value ?? undefined) : UNKNOWN;
}
