/** The type of a stack's root resource. */
export const STACK_TYPE = "pulumi:pulumi:Stack";

/** The type of the provider of dynamic resources. */
export const DYNAMIC_PROVIDER_TYPE = "pulumi:providers:pulumi-nodejs";

/** The type of the plugin's provider instances. */
export const OWN_PROVIDER_TYPE = "pulumi:providers:gatehouse";

/** The prefix of the types of this package's dynamic resources. */
export const OWN_DYNAMIC = "pulumi-nodejs:dynamic/gatehouse:";

/**
 * The prefix of the types of the plugin's resources and functions. The plugin and the dynamic provider have the same
 * resources.
 */
export const OWN_PLUGIN = "gatehouse:index:";

/**
 * The type of the resource whose random id distinguishes the states of one program. Programs do not declare this
 * resource. The plugin has no such resource, because the ids of its provider instances distinguish the states.
 */
export const STATE_IDENTITY_TYPE = `${OWN_DYNAMIC}StateIdentity`;

/** Returns the resource's name: the last part of its URN. */
export function urnName(urn: string): string {
  const parts = urn.split("::");
  return parts.slice(3).join("::");
}

/** Returns the resource's qualified type: the types of its parents and its own type, separated by `$`. */
export function urnQualifiedType(urn: string): string {
  return urn.split("::")[2] ?? "";
}

/** Returns the resource's own type. */
export function urnType(urn: string): string {
  return urnQualifiedType(urn).split("$").at(-1) ?? "";
}

export function urnScope(urn: string): { stack: string; project: string } {
  const [head = "", project = ""] = urn.split("::");
  return { stack: head.slice("urn:pulumi:".length), project };
}

/**
 * Returns the URN of a resource.
 * @param parent URN of the parent; empty or the URN of the stack if the resource has no parent
 */
export function makeUrn(stack: string, project: string, parent: string, type: string, name: string): string {
  const parentType = parent === "" ? "" : urnQualifiedType(parent);
  const prefix = parentType === "" || parentType === STACK_TYPE ? "" : `${parentType}$`;
  return `urn:pulumi:${stack}::${project}::${prefix}${type}::${name}`;
}

export function isDynamicType(type: string): boolean {
  return type.startsWith("pulumi-nodejs:");
}

/**
 * Returns the name of this package's resource for a dynamic type or a plugin type. Returns undefined for types of other
 * packages.
 */
export function ownTypeName(type: string): string | undefined {
  const own = [OWN_DYNAMIC, OWN_PLUGIN].find((prefix) => type.startsWith(prefix));
  return own && type.slice(own.length);
}

/**
 * Returns the display form of a type. This is the class name for resources of this package and for dynamic resources,
 * and the full type for other resources.
 */
export function typeName(type: string): string {
  const isDynamic = type.startsWith("pulumi-nodejs:dynamic") || type === STACK_TYPE;
  return ownTypeName(type) ?? (isDynamic ? type.slice(type.lastIndexOf(":") + 1) : type);
}

/** Returns the URN in a reference to a provider instance. The reference has the form `urn::id`. */
export const urnOfProvider = (reference: string): string => reference.slice(0, reference.lastIndexOf("::"));

/**
 * Returns true if a URN refers to the default provider instance, which resources without an explicit provider use.
 * Engines name this instance `default`, followed by the version of the plugin. A program created any instance with a
 * different name.
 */
export const isDefaultInstance = (urn: string): boolean => /^default(_\d+_\d+_\d+.*)?$/.test(urnName(urn));

/** A set of URNs and URN patterns with wildcards. */
export class UrnPatterns {
  readonly #urns: ReadonlySet<string>;
  readonly #globs: RegExp[];

  constructor(patterns: readonly string[] = []) {
    this.#urns = new Set(patterns.filter((pattern) => !pattern.includes("*")));
    this.#globs = patterns.filter((pattern) => pattern.includes("*")).map(globExpression);
  }

  get empty(): boolean {
    return this.#urns.size === 0 && this.#globs.length === 0;
  }

  has(urn: string): boolean {
    return this.#urns.has(urn) || this.#globs.some((glob) => glob.test(urn));
  }

  get urns(): readonly string[] {
    return [...this.#urns];
  }
}

function globExpression(pattern: string): RegExp {
  const part = (text: string): string => text.split("*").map(quoted).join("[^:]*");
  return new RegExp(`^${pattern.split("**").map(part).join(".*")}$`);
}

function quoted(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}
