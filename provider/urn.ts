/** The type of the root resource. */
export const STACK_TYPE = "pulumi:pulumi:Stack";

/** The type of the provider that dynamic resources belong to. */
export const DYNAMIC_PROVIDER_TYPE = "pulumi:providers:pulumi-nodejs";

/** The type of the plugin's provider instances. */
export const OWN_PROVIDER_TYPE = "pulumi:providers:gatehouse";

/** How the types of this package's dynamic resources begin. */
export const OWN_DYNAMIC = "pulumi-nodejs:dynamic/gatehouse:";

/** How the types of the plugin's resources, which are the same ones, and its functions begin. */
export const OWN_PLUGIN = "gatehouse:index:";

/**
 * The type of the resource by which the dynamic provider tells states apart: the plugin has its instances for that.
 * Programs do not declare it themselves.
 */
export const STATE_IDENTITY_TYPE = `${OWN_DYNAMIC}StateIdentity`;

/** The resource's name: the last part of its URN. */
export function urnName(urn: string): string {
  const parts = urn.split("::");
  return parts.slice(3).join("::");
}

/** The types of the resource's parents and its own, divided by `$`. */
export function urnQualifiedType(urn: string): string {
  return urn.split("::")[2] ?? "";
}

/** The resource's own type. */
export function urnType(urn: string): string {
  return urnQualifiedType(urn).split("$").at(-1) ?? "";
}

export function urnScope(urn: string): { stack: string; project: string } {
  const [head = "", project = ""] = urn.split("::");
  return { stack: head.slice("urn:pulumi:".length), project };
}

/** The URN of a resource. @param parent URN of its parent; empty, or that of the stack itself, for none */
export function makeUrn(stack: string, project: string, parent: string, type: string, name: string): string {
  const parentType = parent === "" ? "" : urnQualifiedType(parent);
  const prefix = parentType === "" || parentType === STACK_TYPE ? "" : `${parentType}$`;
  return `urn:pulumi:${stack}::${project}::${prefix}${type}::${name}`;
}

export function isDynamicType(type: string): boolean {
  return type.startsWith("pulumi-nodejs:");
}

/** Which of this package's resources a type is, dynamic or of the plugin; undefined for types of other packages. */
export function ownTypeName(type: string): string | undefined {
  const own = [OWN_DYNAMIC, OWN_PLUGIN].find((prefix) => type.startsWith(prefix));
  return own && type.slice(own.length);
}

/** A type as people know it: that of a dynamic or own resource is the name of its class, others stay whole. */
export function typeName(type: string): string {
  const isDynamic = type.startsWith("pulumi-nodejs:dynamic") || type === STACK_TYPE;
  return ownTypeName(type) ?? (isDynamic ? type.slice(type.lastIndexOf(":") + 1) : type);
}

/** The URN in a reference to a provider instance, which is `urn::id`. */
export const urnOfProvider = (reference: string): string => reference.slice(0, reference.lastIndexOf("::"));

/**
 * True where a URN names the provider instance of resources whose program names none. Engines call it `default`, with
 * the version of the plugin behind it; any other name is of an instance that a program makes.
 */
export const isDefaultInstance = (urn: string): boolean => /^default(_\d+_\d+_\d+.*)?$/.test(urnName(urn));

/** A set of URNs, some of them given by wildcards. */
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
