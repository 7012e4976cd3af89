import type { AST } from "@eslint-community/regexpp";
import { literalOf, patternTree } from "./patternTree.ts";

/** Most texts that a pattern may spell. */
const TEXTS_MAX = 64;

/**
 * The texts in which a pattern is found, as far as it can be told without a regular expression engine, which is a
 * hundred times slower:
 * - `whole`: those that are one of `texts`;
 * - `start`, `end`, `part`: those that begin with, end with or contain one of `texts`;
 * - `line`: those that begin with one of `texts` and have no line break after it;
 * - `needs`: some of those that begin with one of `texts`; which of them, only the engine knows.
 */
export interface Literals {
  readonly kind: "whole" | "start" | "line" | "end" | "part" | "needs";
  readonly texts: readonly string[];
}

/** The {@link Literals} of a pattern; undefined where nothing can be told. */
export function literalsOf(text: string): Literals | undefined {
  const tree = patternTree(text);
  if (!tree) return undefined;
  const parts = tree.alternatives.map(branch);
  const [first] = parts;
  const texts = parts.flatMap((part) => part?.texts ?? []);
  if (!first || texts.length > TEXTS_MAX || parts.some((part) => part === undefined)) return undefined;
  if (parts.every((part) => part?.kind === first.kind)) return { kind: first.kind, texts };
  // Alternatives of different kinds have in common that a text must begin with one of theirs.
  const anchored = parts.every((part) => part && part.kind !== "end" && part.kind !== "part");
  return anchored ? { kind: "needs", texts } : undefined;
}

const isStart = (node: AST.Element | undefined) => node?.type === "Assertion" && node.kind === "start";
const isEnd = (node: AST.Element | undefined) => node?.type === "Assertion" && node.kind === "end";
/** `.*`, greedy or not. */
const isAnything = (node: AST.Element | undefined): boolean =>
  node?.type === "Quantifier" &&
  node.min === 0 &&
  node.max === Number.POSITIVE_INFINITY &&
  node.element.type === "CharacterSet" &&
  node.element.kind === "any";

function branch({ elements }: AST.Alternative): Literals | undefined {
  const anchored = isStart(elements[0]);
  const { texts, rest } = spell(anchored ? elements.slice(1) : elements);
  const [first, second, ...more] = rest;
  if (anchored) {
    if (first === undefined) return { kind: "start", texts };
    if (isEnd(first) && second === undefined) return { kind: "whole", texts };
    if (isAnything(first) && second === undefined) return { kind: "start", texts };
    if (isAnything(first) && isEnd(second) && more.length === 0) return { kind: "line", texts };
    return { kind: "needs", texts };
  }
  if (first === undefined) return { kind: "part", texts };
  if (isEnd(first) && second === undefined) return { kind: "end", texts };
  return isAnything(first) && second === undefined ? { kind: "part", texts } : undefined;
}

/** The texts that the first elements spell, and the rest: from the first element that stands for too many texts. */
function spell(elements: readonly AST.Element[]): { texts: string[]; rest: readonly AST.Element[] } {
  let texts = [""];
  for (const [index, element] of elements.entries()) {
    const next = textsOf(element);
    if (next === undefined || texts.length * next.length > TEXTS_MAX)
      return { texts, rest: elements.slice(index) };
    texts = texts.flatMap((text) => next.map((more) => text + more));
  }
  return { texts, rest: [] };
}

function textsOf(element: AST.Element): string[] | undefined {
  const literal = literalOf(element);
  if (literal !== undefined) return [literal];
  if (element.type !== "Group" && element.type !== "CapturingGroup") return undefined;
  const branches = element.alternatives.map(({ elements }) => spell(elements));
  return branches.every(({ rest }) => rest.length === 0) ? branches.flatMap(({ texts }) => texts) : undefined;
}
