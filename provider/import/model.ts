import { isNamespace } from "../model/definition.ts";
import type { Declarable } from "../namespace/liveObjects.ts";
import { byTexts } from "../words.ts";
import type { Code } from "./literal.ts";

export const FORMATS = ["typescript", "yaml", "terraform"] as const;

/** The language of a program; `terraform` is a root module in Terraform's language. */
export type Format = (typeof FORMATS)[number];

export interface ProgramOptions {
  readonly project: string;
  readonly namespace: string;
  readonly tenant: string;
  readonly service: string;
  readonly format: Format;
  /** True to declare the resources of the plugin instead of dynamic resources. YAML programs always use the plugin. */
  readonly plugin: boolean;
  /**
   * True to add `adopt: true` to all resources, so that a program without a state adopts existing objects. The program
   * then omits objects that cannot be adopted.
   */
  readonly adopt: boolean;
  /**
   * New access policies and service accounts. The subject of a policy can be the id of a new account. If there are new
   * objects, the program also changes the namespace to identity mode after it creates the policies.
   * @default the program declares only existing objects
   */
  readonly newObjects?: readonly Declarable[];
}

export interface ProgramFile {
  readonly path: string;
  readonly text: string;
}

/** A resource of a program, with the id of its object on the service. */
export interface ImportedResource {
  readonly type: string;
  readonly name: string;
  readonly id: string;
}

export interface Program {
  readonly files: readonly ProgramFile[];
  readonly resources: readonly ImportedResource[];
  readonly leftOut: readonly Declarable[];
}

interface KindOfFile {
  readonly kind: string;
  readonly file: string;
  /** Name of the input that usually has the same value as the resource's name. */
  readonly naming?: string;
  /** Returns the resource's name for an object without a name. */
  readonly nameOf?: (object: Declarable) => string;
  /**
   * The Pulumi options of each resource of the kind. If the option `protect` is true, `destroy` does not delete the
   * resource.
   */
  readonly options?: Readonly<Record<string, unknown>>;
}

export interface KindOfProgram extends KindOfFile {
  readonly objects: readonly NamedObject[];
}

export interface NamedObject extends Declarable {
  /** The resource's name in the program, unique within its kind. */
  readonly resource: string;
}

/** Maximum length of a resource's name, in characters. The service limits the names of objects to 255 characters. */
const NAME_MAX = 255;

/**
 * Assigns names to the resources of a kind, based on the names of the objects, and sorts the resources by name. If
 * several objects have the same name, every object except the first gets a number.
 * @param taken names of existing resources of the kind
 */
export function named(
  objects: readonly Declarable[],
  { nameOf = ({ name }) => name, taken = [] }: Pick<KindOfFile, "nameOf"> & { taken?: Iterable<string> } = {},
): NamedObject[] {
  const wanted = objects
    .map((object) => ({ object, name: resourceName(nameOf(object)) }))
    .sort(
      byTexts(
        ({ name }) => name,
        ({ object }) => object.id,
      ),
    );
  const unique = uniqueNames({ taken, wanted: wanted.map(({ name }) => name) });
  return wanted.map(({ object, name }) => ({ ...object, resource: unique(name) }));
}

/**
 * Assigns names to the resources of all kinds. Uses {@link named} for each kind.
 * @param takenOf returns the names of the program's existing resources of a kind
 */
export const namedByKind = (
  objects: readonly Declarable[],
  takenOf: (kind: string) => Iterable<string>,
): NamedObject[] =>
  [...Map.groupBy(objects, ({ definition }) => definition.name)].flatMap(([kind, some]) =>
    named(some, { taken: takenOf(kind) }),
  );

/**
 * Replaces the subject of an object by a reference in source code, if the subject is the id of a new service account.
 * Returns other objects unchanged.
 * @param accountIds the references to the ids of new accounts, by the ids in {@link ProgramOptions.newObjects}
 */
export function withSubject<T extends Declarable>(object: T, accountIds: ReadonlyMap<string, Code>): T {
  const { user = "" } = (object.inputs.subject ?? {}) as { readonly user?: string };
  const reference = accountIds.get(user);
  return reference ? { ...object, inputs: { ...object.inputs, subject: { user: reference } } } : object;
}

/**
 * Makes the resource that declares the namespace depend on other resources. @param dependsOn source code of these
 * resources; undefined if there are none
 */
export const withNamespaceLast = (
  kinds: readonly KindOfProgram[],
  dependsOn: unknown,
): readonly KindOfProgram[] =>
  dependsOn === undefined
    ? kinds
    : kinds.map((kind) =>
        kind.objects.some(({ definition }) => isNamespace(definition))
          ? { ...kind, options: { ...kind.options, dependsOn } }
          : kind,
      );

/**
 * Creates a function that returns unique names. If a name is already in use, the function adds a number to the name.
 * @param options.taken names that are already in use
 * @param options.wanted names of other objects; a name with an added number never equals one of them
 * @param options.joiner string between a name and the number
 */
export function uniqueNames(options: {
  readonly taken?: Iterable<string>;
  readonly wanted?: Iterable<string>;
  readonly joiner?: string;
}): (name: string) => string {
  const { joiner = "-" } = options;
  const [taken, wanted] = [new Set(options.taken), new Set(options.wanted)];
  const numbers = new Map<string, number>();
  return (name) => {
    let unique = name;
    let number = numbers.get(name) ?? 1;
    while (taken.has(unique) || (unique !== name && wanted.has(unique))) {
      number += 1;
      unique = `${name}${joiner}${number}`;
    }
    numbers.set(name, number);
    taken.add(unique);
    return unique;
  };
}

/**
 * Returns a resource name that engines accept and that users can type. The name has one line and does not contain the
 * separator of URNs.
 */
function resourceName(text: string): string {
  const line = text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ")
    .replaceAll("::", ":-")
    .trim()
    // Terraform normalizes Unicode, so it would treat two Unicode forms of a name as the same resource.
    .normalize();
  return line.slice(0, NAME_MAX).toWellFormed() || "unnamed";
}
