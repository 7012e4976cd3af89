/** The type of the root resource. */
export const STACK_TYPE = "pulumi:pulumi:Stack";

/** The type of the provider that dynamic resources belong to. */
export const DYNAMIC_PROVIDER_TYPE = "pulumi:providers:pulumi-nodejs";

/** How the types of this package's resources begin. */
export const OWN_TYPE = "pulumi-nodejs:dynamic/gatehouse:";

/** The type of the resource by which the provider tells states apart. Programs do not declare it themselves. */
export const STATE_IDENTITY_TYPE = `${OWN_TYPE}StateIdentity`;

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

/** The stack and the project that a URN names. */
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

/** A type as people know it: that of a dynamic resource is the name of its class, others stay whole. */
export function typeName(type: string): string {
  const own = type.startsWith("pulumi-nodejs:dynamic") || type === STACK_TYPE;
  return own ? type.slice(type.lastIndexOf(":") + 1) : type;
}
