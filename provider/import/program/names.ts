import type { Declarable } from "../../estate/liveObjects.ts";
import { byTexts } from "../../words.ts";

/** A resource of the program. */
export interface NamedObject extends Declarable {
  /** Its name in the program: one for each resource of a kind. */
  readonly resource: string;
}

/** Longest name of a resource, in characters: those of the service's objects are at most 255. */
const NAME_MAX = 255;

/**
 * Names resources after their objects, in the order in which people read them. Of several with one name all but the first
 * get a number.
 * @param nameOf the name that is wanted
 * @param taken names that other resources of the kind have
 */
export function named(
  objects: readonly Declarable[],
  nameOf: (object: Declarable) => string,
  taken: Iterable<string> = [],
): NamedObject[] {
  const wanted = objects
    .map((object) => ({ object, name: resourceName(nameOf(object)) }))
    .sort(
      byTexts(
        ({ name }) => name,
        ({ object }) => object.id,
      ),
    );
  const names = new UniqueNames({ taken, wanted: wanted.map(({ name }) => name) });
  return wanted.map(({ object, name }) => ({ ...object, resource: names.take(name) }));
}

/** Gives each name once: of several that are the same, all but the first get a number. */
export class UniqueNames {
  readonly #taken: Set<string>;
  readonly #wanted: ReadonlySet<string>;
  readonly #joiner: string;
  /** The last number that each name got. */
  readonly #numbers = new Map<string, number>();

  /**
   * @param options.taken what is given already
   * @param options.wanted names that no other one gets by its number
   * @param options.joiner what stands before a number; default `-`
   */
  constructor({
    taken = [],
    wanted = [],
    joiner = "-",
  }: {
    readonly taken?: Iterable<string>;
    readonly wanted?: Iterable<string>;
    readonly joiner?: string;
  } = {}) {
    this.#taken = new Set(taken);
    this.#wanted = new Set(wanted);
    this.#joiner = joiner;
  }

  /** The name, with a number where it is taken. */
  take(name: string): string {
    let unique = name;
    let number = this.#numbers.get(name) ?? 1;
    while (this.#taken.has(unique) || (unique !== name && this.#wanted.has(unique))) {
      number += 1;
      unique = `${name}${this.#joiner}${number}`;
    }
    this.#numbers.set(name, number);
    this.#taken.add(unique);
    return unique;
  }
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
