import { tenantId } from "@gatehouse-access/sdk/contract";
import { UNKNOWN } from "../valueMarks.ts";
import { type ConfiguredResource, expression, type PlanJson } from "./planJson.ts";

/** The key of the configuration that a resource has which names none. */
const DEFAULT_KEY = "gatehouse";

/** What a setting decides, and the variable that gives it where a block leaves it out. */
const SETTINGS = {
  url: { kind: "service", value: "address", variable: "GATEHOUSE_URL" },
  tenant: { kind: "namespace", value: "id", variable: "GATEHOUSE_TENANT" },
} as const;

type Name = keyof typeof SETTINGS;
type Settings = Readonly<Record<Name, unknown>>;

/** The namespace of a resource as the plan contains it. */
interface PlannedTenant {
  readonly resource: ConfiguredResource | undefined;
  readonly tenant: unknown;
}

const keyOf = (resource: ConfiguredResource | undefined) => resource?.provider_config_key ?? DEFAULT_KEY;

/** The provider blocks of a plan: service and namespace, as far as the plan contains them. */
export class ProviderBlocks {
  readonly #json: PlanJson;
  readonly #isUrlAlone: (key: string, variable: string) => boolean;
  readonly #tenants: readonly PlannedTenant[];
  /** The keys of the blocks that this provider's resources have; the default one first. */
  readonly #keys: readonly string[];
  readonly #settings = new Map<string, Settings>();

  /**
   * @param own this provider's resources
   * @param isUrlAlone whether the block with this key gives the address of the service by this variable alone
   * @param tenants those of resources that leave it to their block
   */
  constructor(
    json: PlanJson,
    own: readonly ConfiguredResource[],
    isUrlAlone: (key: string, variable: string) => boolean,
    tenants: readonly PlannedTenant[],
  ) {
    this.#json = json;
    this.#isUrlAlone = isUrlAlone;
    this.#tenants = tenants;
    const used = own.flatMap(({ provider_config_key: key }) => key ?? []).toSorted();
    const isWritten = DEFAULT_KEY in json.configuration.provider_config;
    this.#keys = [...new Set([...(isWritten ? [DEFAULT_KEY] : []), ...used])];
  }

  /** The known settings of the block without an alias, as `gatehouse:url`; without such a block, those that all share. */
  shared(): ReadonlyMap<string, string> {
    const key = this.#keys.includes(DEFAULT_KEY) ? DEFAULT_KEY : (this.#keys[0] ?? DEFAULT_KEY);
    const found = Object.entries(this.#of(key)).filter(
      (entry): entry is [Name, string] =>
        typeof entry[1] === "string" &&
        entry[1] !== UNKNOWN &&
        (key === DEFAULT_KEY || this.#keys.every((other) => this.#of(other)[entry[0] as Name] === entry[1])),
    );
    return new Map(found.map(([name, value]) => [`gatehouse:${name}`, value]));
  }

  /** Settings whose value the plan does not contain, as sentences. */
  unseen(): string[] {
    return this.#keys.flatMap((key) =>
      Object.entries(SETTINGS)
        .filter(([name]) => this.#of(key)[name as Name] === UNKNOWN)
        .map(
          ([name, { kind, value, variable }]) =>
            `provider ${key}: its ${name} cannot be told from the plan, so that its resources may be ${kind === "service" ? "on" : "in"} another ${kind} than the reviewed one; give the ${value} as text or by a variable alone, or leave it to ${variable}`,
        ),
    );
  }

  /** The address of a resource's service; undefined where it is not known, as {@link unseen} reports. */
  urlOf(resource: ConfiguredResource | undefined): string | undefined {
    const { url } = this.#of(keyOf(resource));
    return typeof url === "string" && url !== UNKNOWN ? url : undefined;
  }

  #of(key: string): Settings {
    const known = this.#settings.get(key);
    if (known) return known;
    const { provider_config: all } = this.#json.configuration;
    const { expressions = {} } = all[key] ?? all[key.split(":").at(-1) ?? ""] ?? {};
    // A plan has the values of the root module's variables alone.
    const variables = key.includes(":") ? {} : this.#json.variables;
    // No text around an id makes another id of it.
    const tenant = expressionValue(
      expressions.tenant,
      variables,
      (_name, value) => tenantId.safeParse(value).success,
    );
    const settings = {
      url: expressionValue(expressions.url, variables, (name) => this.#isUrlAlone(key, name)),
      tenant: tenant === UNKNOWN ? this.#plannedTenant(key) : tenant,
    };
    this.#settings.set(key, settings);
    return settings;
  }

  /**
   * The namespace that a block gives its resources. The provider plans with it, so a plan contains it even where the
   * expression is not known here; undefined where it is another one for each instance of the block (`for_each`).
   */
  #plannedTenant(key: string): unknown {
    const own = this.#tenants.filter(({ resource }) => keyOf(resource) === key);
    const found = new Set(own.map(({ tenant }) => tenant));
    const isKnown = [...found].every((id) => id !== UNKNOWN && tenantId.safeParse(id).success);
    if (found.size === 0 || !isKnown) return UNKNOWN;
    return found.size === 1 ? [...found][0] : undefined;
  }
}

/**
 * The value of an expression: a constant, or that of a variable; unknown where it is neither, and undefined for null.
 * @param isAlone whether an expression that refers to this variable alone, with this value, is the variable itself
 */
function expressionValue(
  written: unknown,
  variables: PlanJson["variables"],
  isAlone: (variable: string, value: unknown) => boolean,
): unknown {
  const parsed = expression.safeParse(written);
  if (!parsed.success) return undefined;
  const { constant_value: constant, references = [] } = parsed.data;
  // What was written as JSON comes as it was written: templates count as constants there.
  const isTemplate = typeof constant === "string" && /[$%]\{/.test(constant);
  if (constant !== undefined && !isTemplate) return constant;
  const [, name] = (references.length === 1 && /^var\.([\w-]+)$/.exec(references[0] ?? "")) || [];
  const variable = name === undefined ? undefined : variables[name];
  if (name === undefined || !variable) return UNKNOWN;
  const isVariable = isTemplate ? constant === `\${var.${name}}` : isAlone(name, variable.value);
  return isVariable ? (variable.value ?? undefined) : UNKNOWN;
}
