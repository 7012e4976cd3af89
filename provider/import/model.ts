import type { Declarable } from "../estate/liveObjects.ts";
import { byTexts } from "../words.ts";

export const FORMATS = ["typescript", "yaml", "terraform"] as const;

/** The language of a program; `terraform` is a root module in Terraform's own. */
export type Format = (typeof FORMATS)[number];

export interface ProgramOptions {
  readonly project: string;
  readonly namespace: string;
  readonly tenant: string;
  readonly service: string;
  readonly format: Format;
  /** Resources of the plugin in place of dynamic ones; always so in YAML. */
  readonly plugin: boolean;
  /** Every resource says `adopt: true`, for a program without a state. What cannot be adopted is left out. */
  readonly adopt: boolean;
}

export interface ProgramFile {
  readonly path: string;
  readonly text: string;
}

/** A resource of a program, and the object that it is on the service. */
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

export interface KindOfFile {
  readonly kind: string;
  readonly file: string;
  /** The input that mostly equals the resource's name. */
  readonly naming?: string;
  /** The resource's name where the object has none. */
  readonly nameOf?: (object: Declarable) => string;
  /** Options of each resource: no destroy removes what has the option protect. */
  readonly options?: Readonly<Record<string, unknown>>;
}

export interface KindOfProgram extends KindOfFile {
  readonly objects: readonly NamedObject[];
}

export interface NamedObject extends Declarable {
  /** Its name in the program: one for each resource of a kind. */
  readonly resource: string;
}

/** Longest name of a resource, in characters: those of the service's objects are at most 255. */
const NAME_MAX = 255;

/**
 * Names resources of a kind after their objects, in the order in which people read them. Of several with one name all but
 * the first get a number.
 * @param taken names that other resources of the kind have
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

/** The same for objects of all kinds. @param takenOf the names that the program's resources of a kind have */
export const namedByKind = (
  objects: readonly Declarable[],
  takenOf: (kind: string) => Iterable<string>,
): NamedObject[] =>
  [...Map.groupBy(objects, ({ definition }) => definition.name)].flatMap(([kind, some]) =>
    named(some, { taken: takenOf(kind) }),
  );

/**
 * Gives each name once: of several that are the same, all but the first get a number.
 * @param options.taken what is given already
 * @param options.wanted names that no other one gets by its number
 * @param options.joiner what stands before a number
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

/** What engines take as a name and people can type: one line, without what divides the parts of a URN. */
function resourceName(text: string): string {
  const line = text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ")
    .replaceAll("::", ":-")
    .trim()
    // Terraform keeps no other form: two names of one would be one resource.
    .normalize();
  return line.slice(0, NAME_MAX).toWellFormed() || "unnamed";
}
