import type { AST } from "@eslint-community/regexpp";
import { compilePattern, PatternError } from "./pattern.ts";
import { literalOf, patternTree } from "./patternTree.ts";

/** Most texts that are made of one pattern. */
const SAMPLES_MAX = 16;
/** Most repetitions that are written out. */
const REPEATS_MAX = 64;

/**
 * Texts in which a pattern is found, made from its literals: of each alternative the shortest. A pattern whose form is
 * not understood, or that does not compile, gives none; what is given was tried on the pattern itself.
 */
export function samplesOf(pattern: string): string[] {
  const tree = patternTree(pattern);
  if (!tree) return [];
  const texts = new Set(alternatives(tree.alternatives));
  texts.delete("");
  try {
    const { test } = compilePattern(pattern);
    return [...texts].filter(test);
  } catch (error) {
    if (error instanceof PatternError) return [];
    throw error;
  }
}

function alternatives(branches: readonly AST.Alternative[]): string[] {
  return branches.flatMap(({ elements }) => sequence(elements)).slice(0, SAMPLES_MAX);
}

function sequence(elements: readonly AST.Element[]): string[] {
  let texts = [""];
  for (const element of elements) {
    const next = one(element);
    texts = texts.flatMap((text) => next.map((more) => text + more)).slice(0, SAMPLES_MAX);
  }
  return texts;
}

function one(element: AST.Element): string[] {
  switch (element.type) {
    case "Character":
      return [literalOf(element) ?? String.fromCodePoint(element.value)];
    case "Group":
    case "CapturingGroup":
      return alternatives(element.alternatives);
    case "CharacterSet":
      return [memberOf(element)];
    case "CharacterClass":
      return [memberOfClass(element)];
    case "Quantifier":
      return repeated(element);
    default:
      return [""];
  }
}

function repeated({ element, min }: AST.Quantifier): string[] {
  if (element.type === "Assertion" || min > REPEATS_MAX) return [""];
  return sequence(Array.from({ length: min }, () => element));
}

function memberOf(set: AST.CharacterSet): string {
  if (set.kind === "digit") return set.negate ? "x" : "1";
  if (set.kind === "space") return set.negate ? "x" : " ";
  if (set.kind === "word") return set.negate ? "-" : "x";
  return "x";
}

function memberOfClass({ elements, negate }: AST.CharacterClass): string {
  const [first] = elements;
  if (negate || first === undefined) return "x";
  if (first.type === "CharacterClassRange") return String.fromCodePoint(first.min.value);
  if (first.type === "CharacterSet") return memberOf(first);
  return first.type === "Character" ? (literalOf(first) ?? String.fromCodePoint(first.value)) : "x";
}
