import { check } from "../lifecycle/checkInputs.ts";
import { isNamespace, type ResourceDefinition } from "../model/definition.ts";
import type { Reading, ReadObjects } from "../model/kind.ts";
import type { Unread } from "../model/namespaceObjects.ts";
import type { LiveObject } from "../model/object.ts";
import { declaringInputs, idWithin } from "../model/values.ts";
import { definitions, kindNamed, kindOf, kindsWith } from "../resources/index.ts";
import type { Connection } from "../service/connection.ts";
import { isUnreadable } from "../service/listings.ts";
import { ownTypeName } from "../urn.ts";
import type { NamespaceState } from "./namespaceState.ts";

export type { LiveObject } from "../model/object.ts";

/** The objects of a namespace. */
export interface Inventory {
  readonly objects: readonly LiveObject[];
  /** Notes on lists that the credential may not read, as sentences. */
  readonly unknown: readonly string[];
  /** The kinds of objects whose lists the credential may not read. */
  readonly unread: readonly string[];
}

/** Returns the definition of a kind of object. @throws Error if the kind is unknown */
export function definitionNamed(kind: string): ResourceDefinition {
  const definition = definitions.find(({ name }) => name === kind);
  if (!definition) throw new Error(`there is no resource ${kind}`);
  return definition;
}

/** Returns the definition of a resource; undefined for resources of other packages. */
export function definitionOf({ type }: { readonly type: string }): ResourceDefinition | undefined {
  const own = ownTypeName(type);
  return definitions.find(({ name }) => name === own);
}

/** Returns true for a resource that declares a namespace. */
export function declaresNamespace(resource: { readonly type: string }): boolean {
  const definition = definitionOf(resource);
  return definition !== undefined && isNamespace(definition);
}

/**
 * Lists the objects of a namespace.
 * @param wanted the kinds of objects to list
 * @throws RequestError if a list cannot be read for a reason other than missing permissions
 */
export async function inventoryOf(
  connection: Connection,
  tenant: string,
  wanted: Iterable<ResourceDefinition>,
): Promise<Inventory> {
  const unread = new Map<string, string>();
  const read = async (definition: ResourceDefinition): Promise<LiveObject[]> => {
    const { reading, watched } = kindOf({ definition });
    if (!definition.list) return [];
    try {
      const read = reading?.read(connection, tenant) ?? {
        objects: await definition.list(connection, tenant),
      };
      const { objects = [], unread: missing }: ReadObjects = await read;
      if (missing) unread.set(definition.name, reasonOf(missing, reading));
      const live = objects.map((object): LiveObject => ({ ...object, definition }));
      return live.filter((object) => watched?.counts?.(object) ?? true);
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      unread.set(definition.name, error.message);
      return [];
    }
  };
  const objects = (await Promise.all([...new Set(wanted)].map(read))).flat();
  return { objects, unknown: unreadNotes(unread), unread: [...unread.keys()] };
}

/**
 * Returns the objects of a namespace that coverage reports include, and the kinds that could not be read. A coverage
 * report shows which objects a program manages.
 */
export function watchedIn(state: NamespaceState): Inventory {
  const unread = new Map(
    kindsWith("watched").flatMap(({ definition, parts }) => {
      const read = (parts?.whole ?? definition).name;
      const missing = state.unread.get(read);
      return missing ? [[definition.name, reasonOf(missing, kindNamed(read).reading)] as const] : [];
    }),
  );
  return { objects: state.watched(), unknown: unreadNotes(unread), unread: [...unread.keys()] };
}

/**
 * Returns the reason why objects could not be read. If only a part of the kind could not be read, the reason begins
 * with the name of this part.
 */
const reasonOf = ({ what, reason }: Unread, reading: Reading | undefined): string =>
  what === reading?.what ? reason : `${what}: ${reason}`;

const unreadNotes = (unread: ReadonlyMap<string, string>): string[] =>
  [...unread].map(([kind, why]) => `objects of the kind ${kind} could not be read: ${why}`);

/** An object with the inputs that declare it in a program. */
export interface Declarable extends Omit<LiveObject, "state" | "reason"> {
  readonly inputs: Readonly<Record<string, unknown>>;
  /** A comment above the declaration, for example the name of an object whose id is in the inputs. */
  readonly comment?: string;
}

/** An object that a program cannot declare, and the reason. */
export interface Undeclarable {
  readonly object: LiveObject;
  readonly reason: string;
}

/**
 * Splits objects into two lists: objects that a program can declare, and objects with values that the inputs of the
 * resource type do not allow.
 */
export function declarable(objects: readonly LiveObject[]) {
  const possible: Declarable[] = [];
  const undeclarable: Undeclarable[] = [];
  for (const object of objects) {
    const { definition, id, name, state } = object;
    const inputs = declaringInputs(definition.inputs, state);
    const reason = object.reason ?? check(definition, inputs).failures[0]?.message;
    if (reason === undefined) possible.push({ definition, id, name, inputs });
    else undeclarable.push({ object, reason });
  }
  return { declarable: possible, undeclarable };
}

/** Returns the title of an object for sentences: `PublicKey ana (73:d4:…)`. */
export const objectText = ({ definition, id, name }: LiveObject): string =>
  `${definition.name} ${name} (${idWithin({ id })})`;
