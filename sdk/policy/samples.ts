import type { AST } from "@eslint-community/regexpp";
import { patternOf } from "./pattern.ts";
import { literalOf, patternTree } from "./patternTree.ts";

/** Most texts that the alternatives of a sequence are combined to. */
const COMBINATIONS_MAX = 16;
/** Most repetitions that are written out. */
const REPEATS_MAX = 64;

/**
 * Texts in which a pattern is found, made from its literals: of each alternative the shortest. Each alternative is in
 * one at least; all combinations of them are there while they are few. A pattern whose form is not understood, or that
 * does not compile, gives none; what is given was tried on the pattern itself.
 * @param filler what stands where the pattern takes almost any character
 */
export function samplesOf(pattern: string, filler = "x"): string[] {
  const tree = patternTree(pattern);
  if (!tree) return [];
  // Before anything is written out: RE2 refuses repetitions of repetitions that would never end.
  const compiled = patternOf(pattern);
  if (!compiled) return [];
  const texts = new Set(new Sampler(filler).alternatives(tree.alternatives, COMBINATIONS_MAX));
  texts.delete("");
  return [...texts].filter(compiled.test);
}

class Sampler {
  readonly #filler: string;

  constructor(filler: string) {
    this.#filler = filler;
  }

  /** @param most combinations that all branches together may have */
  alternatives(branches: readonly AST.Alternative[], most: number): string[] {
    const share = Math.floor(most / branches.length);
    return branches.flatMap(({ elements }) => this.#sequence(elements, share));
  }

  #sequence(elements: readonly AST.Element[], most: number): string[] {
    let texts = [""];
    for (const element of elements) texts = combined(texts, this.#one(element, most), most);
    return texts;
  }

  #one(element: AST.Element, most: number): string[] {
    switch (element.type) {
      case "Character":
        return [characterOf(element)];
      case "Group":
      case "CapturingGroup":
        return this.alternatives(element.alternatives, most);
      case "CharacterSet":
        return [this.#memberOf(element)];
      case "CharacterClass":
        return [this.#memberOfClass(element)];
      case "Quantifier":
        return this.#repeated(element, most);
      default:
        return [""];
    }
  }

  #repeated({ element, min }: AST.Quantifier, most: number): string[] {
    if (element.type === "Assertion" || min > REPEATS_MAX) return [""];
    return this.#sequence(
      Array.from({ length: min }, () => element),
      most,
    );
  }

  #memberOf(set: AST.CharacterSet): string {
    if (set.kind === "digit") return set.negate ? this.#filler : "1";
    if (set.kind === "space") return set.negate ? this.#filler : " ";
    if (set.kind === "word") return set.negate ? "-" : "x";
    return this.#filler;
  }

  #memberOfClass({ elements, negate }: AST.CharacterClass): string {
    const [first] = elements;
    if (negate || first === undefined) return this.#filler;
    if (first.type === "CharacterClassRange") return characterOf(first.min);
    if (first.type === "CharacterSet") return this.#memberOf(first);
    return first.type === "Character" ? characterOf(first) : this.#filler;
  }
}

const characterOf = (node: AST.Character) => literalOf(node) ?? String.fromCodePoint(node.value);

/** Every start with every end; where that would be too many, each of them with one. */
function combined(starts: readonly string[], ends: readonly string[], most: number): string[] {
  if (starts.length * ends.length <= most) return starts.flatMap((start) => ends.map((end) => start + end));
  return Array.from(
    { length: Math.max(starts.length, ends.length) },
    (_, index) => `${starts[index % starts.length]}${ends[index % ends.length]}`,
  );
}
