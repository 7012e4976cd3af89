import { byText } from "./order.ts";

/** Most names that an error suggests. */
const NEAR_MAX = 3;
/** Names that have less than this in common with a text are not near it, of 1. */
const NEAR_LEAST = 0.3;

/** The names nearest to a text, by the pairs of characters that they share (Dice); none where none is near. */
export function nearNames(text: string, names: Iterable<string>): string[] {
  const wanted = pairs(text);
  return [...new Set(names)]
    .map((name) => ({ name, likeness: likeness(wanted, pairs(name)) }))
    .filter(({ likeness }) => likeness >= NEAR_LEAST)
    .sort((left, right) => right.likeness - left.likeness || byText(left.name, right.name))
    .slice(0, NEAR_MAX)
    .map(({ name }) => name);
}

function pairs(text: string): ReadonlySet<string> {
  // The ends count as well, so that single characters have pairs.
  const framed = ` ${text.toLowerCase()} `;
  return new Set(Array.from({ length: framed.length - 1 }, (_, index) => framed.slice(index, index + 2)));
}

function likeness(left: ReadonlySet<string>, right: ReadonlySet<string>): number {
  const shared = [...left].filter((pair) => right.has(pair)).length;
  return (2 * shared) / (left.size + right.size);
}
