import { check } from "../lifecycle/lifecycle.ts";
import type { Listed, ResourceDefinition } from "../resources/definition.ts";
import { definitions } from "../resources/index.ts";
import { declaringInputs, idWithin } from "../resources/values.ts";
import type { Connection } from "../service/connection.ts";
import { readInvitations } from "../service/invitations.ts";
import { isUnreadable } from "../service/listings.ts";
import { usersOf } from "../service/newerListings.ts";
import { ownTypeName } from "../urn.ts";

/** An object on the service, with the definition of its resource type. */
export interface LiveObject extends Listed {
  readonly definition: ResourceDefinition;
}

/** The objects of a namespace. */
export interface Inventory {
  readonly objects: readonly LiveObject[];
  /** Lists that the credential may not read, as sentences. */
  readonly unknown: readonly string[];
  /** The kinds of objects whose lists the credential may not read. */
  readonly unread: readonly string[];
}

/** The kinds of objects that control access or its administration, and that users can create manually. */
export const WATCHED_KINDS = [
  "Member",
  "PublicKey",
  "FirewallRule",
  "AccessPolicy",
  "ServiceAccount",
  "InstallKey",
  "ApiKey",
  "TrustedWorkload",
  "DeviceTagAttachment",
] as const;

/** Returns the definition of a kind of object. @throws Error if the kind is unknown */
export function definitionNamed(kind: string): ResourceDefinition {
  const definition = definitions.find(({ name }) => name === kind);
  if (!definition) throw new Error(`there is no resource ${kind}`);
  return definition;
}

/** The definition of a resource; undefined for resources of other packages. */
export function definitionOf({ type }: { readonly type: string }): ResourceDefinition | undefined {
  const own = ownTypeName(type);
  return definitions.find(({ name }) => name === own);
}

/**
 * Lists the objects of a namespace.
 * @param kinds names of definitions whose objects can be listed
 * @throws RequestError if a list cannot be read for a reason other than missing permissions
 */
export async function inventoryOf(
  connection: Connection,
  tenant: string,
  kinds: readonly string[],
): Promise<Inventory> {
  const unreadable = new Map<string, string>();
  const read = async (kind: string): Promise<LiveObject[]> => {
    const definition = definitionNamed(kind);
    try {
      const list = (await definition.list?.(connection, tenant)) ?? [];
      if (kind === "Member") await reportInvitations();
      return list.map((object) => ({ ...object, definition }));
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      unreadable.set(kind, error.message);
      return [];
    }
  };
  // Members with unanswered invitations are also objects of the kind Member.
  const reportInvitations = async () => {
    const opened = await connection.tenant(tenant);
    const namespace = await connection.namespaces.find(tenant);
    const { error } = await readInvitations(opened, namespace ? await usersOf(opened, namespace) : []);
    if (error) unreadable.set("Member", `invitations: ${error.message}`);
  };
  const objects = (await Promise.all(kinds.map(read))).flat();
  const unknown = [...unreadable].map(
    ([kind, why]) => `objects of the kind ${kind} could not be read: ${why}`,
  );
  return { objects, unknown, unread: [...unreadable.keys()] };
}

/** An object with the inputs that declare it in a program. */
export interface Declarable extends Omit<LiveObject, "state" | "reason"> {
  readonly inputs: Readonly<Record<string, unknown>>;
  /** A comment above the declaration, such as the name of an object whose id the inputs contain. */
  readonly comment?: string;
}

/** An object that a program cannot declare, and the reason. */
export interface Undeclarable {
  readonly object: LiveObject;
  readonly reason: string;
}

/**
 * Splits objects into those that a program can declare, and those with values that the resource type's inputs do not
 * allow.
 */
export function declarable(objects: readonly LiveObject[]) {
  const possible: Declarable[] = [];
  const undeclarable: Undeclarable[] = [];
  for (const object of objects) {
    const { definition, id, name, state } = object;
    const inputs = state && declaringInputs(definition.inputs, state);
    const [failure] = inputs ? check(definition, inputs).failures : [];
    if (inputs && !failure) possible.push({ definition, id, name, inputs });
    else undeclarable.push({ object, reason: failure?.message ?? object.reason ?? "it cannot be read" });
  }
  return { declarable: possible, undeclarable };
}

/** Title of an object in sentences: `PublicKey ana (73:d4:…)`. */
export const objectText = ({ definition, id, name }: LiveObject): string =>
  `${definition.name} ${name} (${idWithin({ id })})`;
