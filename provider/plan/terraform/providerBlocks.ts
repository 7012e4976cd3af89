import { tenantId } from "@gatehouse-access/sdk/contract";
import type { ResourceValues } from "../../engine/index.ts";
import { UNKNOWN } from "../../engineMarks.ts";
import { CREDENTIAL_SETTINGS } from "../../service/newConnection.ts";
import { isOwnSource } from "../../terraform/source.ts";
import { terraformName } from "../../terraform/types.ts";
import { type ConfiguredResource, expression, type PlanJson } from "./planJson.ts";

/** What the types of resources begin with: Terraform takes it for the provider's name where a resource gives no other. */
const DEFAULT_KEY = "gatehouse";

type Block = PlanJson["configuration"]["provider_config"][string];

/** The block of a key: `gh`, `gh.alias`, or of a module's own block `module.a:gh`. */
const blockOf = ({ configuration: { provider_config: all } }: PlanJson, key: string): Block | undefined =>
  all[key] ?? all[key.split(":").at(-1) ?? ""];

/** True where the block of a key is this provider's, whatever the configuration calls it. */
export function isOwnBlock(json: PlanJson, key: string): boolean {
  const source = blockOf(json, key)?.full_name;
  return source === undefined ? key.split(":").at(-1)?.split(".")[0] === DEFAULT_KEY : isOwnSource(source);
}

/** What a setting decides, and the variable that gives it where a block leaves it out. */
const SETTINGS = {
  url: { kind: "service", value: "address", variable: "GATEHOUSE_URL" },
  tenant: { kind: "namespace", value: "id", variable: "GATEHOUSE_TENANT" },
} as const;

const CREDENTIAL_ATTRIBUTES = CREDENTIAL_SETTINGS.map(terraformName);

type Name = keyof typeof SETTINGS;
type Settings = Readonly<Record<Name, unknown>>;

/** The namespace of a resource as the plan contains it. */
interface PlannedTenant {
  readonly resource: ConfiguredResource | undefined;
  readonly tenant: unknown;
}

/** The provider blocks of a plan: service and namespace, as far as the plan contains them. */
export class ProviderBlocks {
  readonly #json: PlanJson;
  readonly #isUrlAlone: (key: string, variable: string) => boolean;
  readonly #tenants: readonly PlannedTenant[];
  /** The keys of the blocks that this provider's resources have; the default ones first. */
  readonly #keys: readonly string[];
  /** The key of the root module's block without an alias; undefined where there is none, or several. */
  readonly #default: string | undefined;
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
    // A plan has a block for each name that any module gives the provider, also where none is written.
    const defaults = Object.entries(json.configuration.provider_config).flatMap(
      ([key, { alias, expressions }]) => {
        const isRoot = !key.includes(":") && alias === undefined && isOwnBlock(json, key);
        return isRoot && (used.includes(key) || Object.keys(expressions).length > 0) ? [key] : [];
      },
    );
    this.#keys = [...new Set([...defaults, ...used])];
    this.#default = defaults.length === 1 ? defaults[0] : undefined;
  }

  /** The known settings of the block without an alias, as `gatehouse:url`; without such a block, those that all share. */
  shared(): ReadonlyMap<string, string> {
    const key = this.#default ?? this.#keys[0] ?? DEFAULT_KEY;
    const found = Object.entries(this.#of(key)).filter(
      (entry): entry is [Name, string] =>
        typeof entry[1] === "string" &&
        entry[1] !== UNKNOWN &&
        (key === this.#default ||
          this.#keys.every((other) => this.#of(other)[entry[0] as Name] === entry[1])),
    );
    return new Map(found.map(([name, value]) => [`gatehouse:${name}`, value]));
  }

  /** What a resource of the root module gives as `provider` for {@link shared}; nothing where it need not give it. */
  named(): { readonly provider?: string } {
    const key = this.#default ?? this.#keys.find((one) => !one.includes(":")) ?? DEFAULT_KEY;
    return key === DEFAULT_KEY ? {} : { provider: key };
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

  /**
   * The settings that a resource's block gives it alone: the address of the service where it is known, as {@link unseen}
   * reports, and that it has a credential.
   */
  settingsOf(resource: ConfiguredResource | undefined): ResourceValues["provider"] {
    const key = this.#keyOf(resource);
    const { url } = this.#of(key);
    const block = blockOf(this.#json, key);
    // A module's key may stand for the root module's block.
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
    const own = this.#tenants.filter(({ resource }) => this.#keyOf(resource) === key);
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
