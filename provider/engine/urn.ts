/** The type of the root resource. */
export const STACK_TYPE = "pulumi:pulumi:Stack";

/** How the types of this package's resources begin. */
export const OWN_TYPE = "pulumi-nodejs:dynamic/gatehouse:";

/** The type of the resource by which the provider tells states apart: nothing that a program declares. */
export const STATE_IDENTITY_TYPE = `${OWN_TYPE}StateIdentity`;

/** A URN's last part. */
export function urnName(urn: string): string {
  const parts = urn.split("::");
  return parts.slice(3).join("::");
}

/** The resource's type with the types of its parents before it, divided by `$`. */
export function urnQualifiedType(urn: string): string {
  return urn.split("::")[2] ?? "";
}

/** The resource's own type. */
export function urnType(urn: string): string {
  return urnQualifiedType(urn).split("$").at(-1) ?? "";
}

/** The stack and the project a URN names. */
export function urnScope(urn: string): { stack: string; project: string } {
  const [head = "", project = ""] = urn.split("::");
  return { stack: head.slice("urn:pulumi:".length), project };
}

/** Builds the URN of a resource below `parent` (empty, or the stack itself: no parent type). */
export function makeUrn(stack: string, project: string, parent: string, type: string, name: string): string {
  const parentType = parent === "" ? "" : urnQualifiedType(parent);
  const prefix = parentType === "" || parentType === STACK_TYPE ? "" : `${parentType}$`;
  return `urn:pulumi:${stack}::${project}::${prefix}${type}::${name}`;
}

/** Splits a reference to a provider, `urn::id`. */
export function splitProviderRef(ref: string): { urn: string; id: string } {
  const at = ref.lastIndexOf("::");
  return { urn: ref.slice(0, at), id: ref.slice(at + 2) };
}

/** A type as people know it: a dynamic resource's as its class is called, others whole. */
export function typeName(type: string): string {
  const own = type.startsWith("pulumi-nodejs:dynamic") || type === STACK_TYPE;
  return own ? type.slice(type.lastIndexOf(":") + 1) : type;
}
