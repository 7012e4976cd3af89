import { tenantId } from "@gatehouse-access/sdk/contract";
import type { ResourceValues } from "../../engine/index.ts";
import { UNKNOWN } from "../../engineMarks.ts";
import { CREDENTIAL_SETTINGS } from "../../service/newConnection.ts";
import { isOwnSource } from "../../terraform/source.ts";
import { terraformName } from "../../terraform/types.ts";
import type { ConfigurationFacts } from "./configurationFacts.ts";
import { type ConfiguredResource, expression, type PlanJson } from "./planJson.ts";

/**
 * The prefix of this provider's resource types. Terraform uses this prefix as the default local name of the provider.
 */
const DEFAULT_KEY = "gatehouse";

type Block = PlanJson["configuration"]["provider_config"][string];

/** Returns the provider block with this key in a plan: `gh`, `gh.alias`, or `module.a:gh` for a module's own block. */
export const blockOf = (
  { configuration: { provider_config: all } }: PlanJson,
  key: string,
): Block | undefined => all[key] ?? all[key.split(":").at(-1) ?? ""];

/**
 * Returns true if the provider block with this key configures the Gatehouse provider. The block may use any local name.
 */
export function isOwnBlock(json: PlanJson, key: string): boolean {
  const source = blockOf(json, key)?.full_name;
  return source === undefined ? key.split(":").at(-1)?.split(".")[0] === DEFAULT_KEY : isOwnSource(source);
}

/**
 * The settings of a provider block. `place` completes the sentence about an unknown setting: it states where the
 * resources may be. `variable` is the environment variable of the setting.
 */
const SETTINGS = {
  url: { place: "on another service", variable: "GATEHOUSE_URL" },
  tenant: { place: "in another namespace", variable: "GATEHOUSE_TENANT" },
  project: { place: "declared by another project", variable: "GATEHOUSE_PROJECT" },
} as const;

const CREDENTIAL_ATTRIBUTES = CREDENTIAL_SETTINGS.map(terraformName);

type Name = keyof typeof SETTINGS;
type Settings = Readonly<Record<Name, unknown>>;

/** The namespace of a resource that gets its namespace from its provider block. */
export interface ResourceTenant {
  readonly resource: ConfiguredResource;
  /** The id, or the mark {@link UNKNOWN}. */
  readonly tenant: unknown;
  /** True if the value is planned. False if the plan omits the resource, so that the value comes from the state. */
  readonly isPlanned: boolean;
}

/** The provider blocks of a plan, with their services and namespaces if the plan contains them. */
export class ProviderBlocks {
  readonly #json: PlanJson;
  readonly #facts: ConfigurationFacts;
  readonly #tenants: readonly ResourceTenant[];
  /** The keys of this provider's blocks that are in use, default blocks first. */
  readonly #keys: readonly string[];
  /**
   * The key of the root module's block without an alias. Undefined if the module has no such block, or more than one.
   */
  readonly #default: string | undefined;
  /** The keys of this provider's blocks that the configuration contains. */
  readonly #written: readonly string[];
  readonly #settings = new Map<string, Settings>();

  /**
   * Finds the provider blocks of a plan.
   * @param own the resources of this provider
   * @param tenants the namespaces of the resources that get their namespace from a provider block
   */
  constructor(
    json: PlanJson,
    own: readonly ConfiguredResource[],
    facts: ConfigurationFacts,
    tenants: readonly ResourceTenant[],
  ) {
    this.#json = json;
    this.#facts = facts;
    this.#tenants = tenants;
    const used = own.flatMap(({ provider_config_key: key }) => key ?? []).toSorted();
    // The JSON of a plan has a block for each local name of the provider in any module, even if the configuration has
    // no such block. So a block without expressions is used only if a resource refers to it.
    const blocks = json.configuration.provider_config;
    this.#written = Object.entries(blocks).flatMap(([key, { expressions }]) =>
      isOwnBlock(json, key) && (used.includes(key) || Object.keys(expressions).length > 0) ? [key] : [],
    );
    const defaults = this.#written.filter(
      (key) => !key.includes(":") && blockOf(json, key)?.alias === undefined,
    );
    this.#keys = [...new Set([...defaults, ...used])];
    this.#default = defaults.length === 1 ? defaults[0] : undefined;
  }

  /**
   * Returns the known settings of the root module's block without an alias, by keys such as `gatehouse:url`. If there
   * is no such block, returns the settings that are equal in all blocks.
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
   * Returns the `provider` argument that gives a resource of the root module the {@link shared} settings. Omitted if
   * the default block has these settings.
   */
  named(): { readonly provider?: string } {
    const key = this.#default ?? this.#keys.find((one) => !one.includes(":")) ?? DEFAULT_KEY;
    return key === DEFAULT_KEY ? {} : { provider: key };
  }

  /** Returns sentences about settings that are unknown in the plan. */
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
   * Returns the address of the service in a resource's provider block. Returns undefined if the block sets no address,
   * and the mark {@link UNKNOWN} if the plan does not contain the address.
   * @param resource undefined for a resource whose block was removed. The plan does not contain the provider block of
   *   this resource, so the address is known only if all provider blocks have the same address.
   */
  serviceOf(resource: ConfiguredResource | undefined): string | undefined {
    if (!resource && this.#hasServices()) return UNKNOWN;
    const { url } = this.#of(this.#keyOf(resource));
    return typeof url === "string" ? url : undefined;
  }

  /** Returns true if the provider blocks have different addresses. */
  #hasServices(): boolean {
    const keys = new Set([...this.#written, ...this.#keys]);
    return new Set([...keys].map((key) => this.#of(key).url)).size > 1;
  }

  /**
   * Returns the settings of a resource's provider block: the address of the service and the namespace, if they are
   * known. If the block has its own credential, `credential` is the mark `[secret]`.
   * @param resource undefined for a resource whose block was removed. If its service is unknown, the address is the
   *   mark `[unknown]`.
   */
  settingsOf(resource: ConfiguredResource | undefined): ResourceValues["provider"] {
    if (!resource && this.#hasServices()) return { url: "[unknown]" };
    const key = this.#keyOf(resource);
    const { url, tenant } = this.#of(key);
    const block = blockOf(this.#json, key);
    // A key in a child module, such as `module.a:gh`, may refer to the root module's block. So the blocks are compared
    // instead of the keys.
    const isDefault = this.#default !== undefined && block === blockOf(this.#json, this.#default);
    const isOwn = !isDefault && CREDENTIAL_ATTRIBUTES.some((name) => block && name in block.expressions);
    return {
      ...(typeof url === "string" && url !== UNKNOWN && { url }),
      ...(typeof tenant === "string" && tenant !== UNKNOWN && { tenant }),
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
      // A plan contains the values of the root module's variables, but not those of child modules.
      const variable = key.includes(":") ? undefined : this.#json.variables[name];
      return variable && this.#facts.isInPlan(name) ? variable : undefined;
    };
    const settingOf = (setting: Name) =>
      expressionValue(expressions[setting], variableOf, (name) =>
        this.#facts.isSettingAlone(key, setting, name),
      );
    const settings = {
      url: settingOf("url"),
      tenant: this.#tenantOf(key, settingOf("tenant")),
      project: settingOf("project"),
    };
    this.#settings.set(key, settings);
    return settings;
  }

  /**
   * Returns the namespace of the resources that use a provider block. The namespaces of the planned resources take
   * precedence over the block's expression, since the provider has computed them. Returns undefined if the namespace
   * differs between instances of the block (`for_each`), or if the block sets no namespace.
   * @param written the value of the block's expression: undefined for a block without this argument
   */
  #tenantOf(key: string, written: unknown): unknown {
    const own = this.#tenants.filter(({ resource }) => this.#keyOf(resource) === key);
    const isKnown = written !== undefined && written !== UNKNOWN;
    const planned = commonTenant(own.filter(({ isPlanned }) => isPlanned));
    switch (planned) {
      case UNKNOWN:
        // If the block does not set a namespace, the resources may use the only namespace of the credential, which is
        // not known before the apply.
        return written === undefined ? undefined : UNKNOWN;
      case SEVERAL:
        return isKnown && own.some(({ tenant }) => tenant === written) ? written : undefined;
      case NONE: {
        if (isKnown) return written;
        const inState = commonTenant(own);
        return typeof inState === "string" && inState !== UNKNOWN ? inState : written;
      }
      default:
        return planned;
    }
  }
}

/** The result of {@link commonTenant} for an empty list. */
const NONE = Symbol("none");

/** The result of {@link commonTenant} for resources in different namespaces. */
const SEVERAL = Symbol("several");

/**
 * Returns the namespace that all resources have in common. Returns the mark {@link UNKNOWN} if the namespace of any
 * resource is unknown.
 */
function commonTenant(resources: readonly ResourceTenant[]): string | typeof NONE | typeof SEVERAL {
  const ids = new Set(resources.map(({ tenant }) => tenantId.safeParse(tenant).data ?? UNKNOWN));
  if (ids.has(UNKNOWN)) return UNKNOWN;
  const [id = NONE, ...others] = ids;
  return others.length > 0 ? SEVERAL : id;
}

/**
 * Returns the value of an expression that is a constant or a variable. Any other expression is unknown. The value null
 * becomes undefined.
 * @param variableOf returns a variable; undefined if the plan does not contain its value
 * @param isAlone called for an expression that refers only to this variable. Returns true if the expression contains
 *   nothing else: `var.url`, but not `"${var.url}/other"`.
 */
export function expressionValue(
  written: unknown,
  variableOf: (variable: string) => PlanJson["variables"][string] | undefined,
  isAlone: (variable: string) => boolean,
): unknown {
  const parsed = expression.safeParse(written);
  if (!parsed.success) return undefined;
  const { constant_value: constant, references = [] } = parsed.data;
  // For a configuration in JSON syntax, a plan contains templates such as `${var.url}` as constants.
  const isTemplate = typeof constant === "string" && /[$%]\{/.test(constant);
  if (constant !== undefined && !isTemplate) return constant;
  const [, name] =
    (references.length === 1 && /^var\.([\p{ID_Continue}-]+)$/u.exec(references[0] ?? "")) || [];
  const variable = name === undefined ? undefined : variableOf(name);
  if (name === undefined || variable?.value === undefined) return UNKNOWN;
  const isVariable = isTemplate ? constant === `\${var.${name}}` : isAlone(name);
  return isVariable ? (variable.value ?? undefined) : UNKNOWN;
}
