import type { Declarable } from "../../inventory/liveObjects.ts";
import { byTexts } from "../../review/words/order.ts";

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
 */
export function named(objects: readonly Declarable[], nameOf: (object: Declarable) => string): NamedObject[] {
  const wanted = objects
    .map((object) => ({ object, name: resourceName(nameOf(object)) }))
    .sort(
      byTexts(
        ({ name }) => name,
        ({ object }) => object.id,
      ),
    );
  const taken = new Set(wanted.map(({ name }) => name));
  const used = new Set<string>();
  const numbers = new Map<string, number>();
  return wanted.map(({ object, name }) => {
    const resource = used.has(name) ? freeName(name, taken, numbers) : name;
    used.add(resource);
    taken.add(resource);
    return { ...object, resource };
  });
}

/** @param numbers the last number that each name got */
function freeName(name: string, taken: ReadonlySet<string>, numbers: Map<string, number>): string {
  let number = numbers.get(name) ?? 1;
  do number += 1;
  while (taken.has(`${name}-${number}`));
  numbers.set(name, number);
  return `${name}-${number}`;
}

/** What engines take as a name and people can type: one line, without what divides the parts of a URN. */
function resourceName(text: string): string {
  const line = text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ")
    .replaceAll("::", ":-")
    .trim();
  return line.slice(0, NAME_MAX).toWellFormed() || "unnamed";
}
