import { NotFoundError } from "@gatehouse-access/sdk";
import { check } from "../lifecycle/lifecycle.ts";
import type { Listed, ResourceDefinition } from "../resources/definition.ts";
import { definitions } from "../resources/index.ts";
import { declaringInputs, idWithin } from "../resources/values.ts";
import type { Connection } from "../service/connection.ts";
import { isSilent, isUnreadable } from "../service/listings.ts";
import { ownTypeName } from "../urn.ts";

/** An object that is on the service. */
export interface LiveObject extends Listed {
  readonly definition: ResourceDefinition;
}

/** What a namespace has. */
export interface Inventory {
  readonly objects: readonly LiveObject[];
  /** What the credential may not read of it, as sentences. */
  readonly unknown: readonly string[];
  /** The kinds of which it may not read the objects. */
  readonly unread: readonly string[];
}

/** The kinds whose objects somebody may have made by hand, and which decide who can reach what or who may change that. */
export const WATCHED_KINDS = [
  "Member",
  "PublicKey",
  "FirewallRule",
  "ApiKey",
  "DeviceTagAttachment",
] as const;

/** The definition of this name. @throws Error where there is none */
export function definitionNamed(kind: string): ResourceDefinition {
  const found = definitions.find(({ name }) => name === kind);
  if (!found) throw new Error(`there is no resource ${kind}`);
  return found;
}

/** The definition of a resource of this type; undefined for resources that are not of this package. */
export function definitionOf({ type }: { readonly type: string }): ResourceDefinition | undefined {
  const own = ownTypeName(type);
  return definitions.find(({ name }) => name === own);
}

/**
 * Lists the objects of a namespace.
 * @param kinds names of definitions that can be listed
 * @throws RequestError where a list cannot be read for another reason than the credential's rights
 */
export async function inventoryOf(
  connection: Connection,
  tenant: string,
  kinds: readonly string[],
): Promise<Inventory> {
  const unreadable = new Map<string, string>();
  const lists = await Promise.all(
    kinds.map(async (kind) => {
      const definition = definitionNamed(kind);
      const list = await readList(definition, connection, tenant, unreadable);
      return list.map((object) => ({ ...object, definition }));
    }),
  );
  const unknown = [...unreadable].map(
    ([kind, why]) => `objects of the kind ${kind} could not be read: ${why}`,
  );
  return { objects: lists.flat(), unknown, unread: [...unreadable.keys()] };
}

async function readList(
  { name, list }: ResourceDefinition,
  connection: Connection,
  tenant: string,
  unreadable: Map<string, string>,
): Promise<readonly Listed[]> {
  try {
    return (await list?.(connection, tenant)) ?? [];
  } catch (error) {
    // Services without a part of the interface, such as a firewall, say so with 404: there is nothing of that kind.
    if (error instanceof NotFoundError && name === "FirewallRule" && !isSilent(error)) return [];
    if (!isUnreadable(error)) throw error;
    unreadable.set(name, error.message);
    return [];
  }
}

/** An object, and the inputs by which a program declares it as it is. */
export interface Declarable extends Omit<LiveObject, "state" | "reason"> {
  readonly inputs: Readonly<Record<string, unknown>>;
}

/** An object that no program can declare as it is, and why. */
export interface Undeclarable {
  readonly object: LiveObject;
  readonly reason: string;
}

/** Sorts objects by whether a program can declare them: the service may hold what no input allows. */
export function declarable(objects: readonly LiveObject[]): {
  readonly declarable: readonly Declarable[];
  readonly undeclarable: readonly Undeclarable[];
} {
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

/** An object for people: `PublicKey ana (73:d4:…)`. */
export const objectText = ({ definition, id, name }: LiveObject): string =>
  `${definition.name} ${name} (${idWithin({ id })})`;
