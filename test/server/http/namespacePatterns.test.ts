import { expect, test } from "vitest";
import { newPattern } from "../../../sdk/policy/index.ts";
import { NamespacePatterns } from "../../../server/NamespacePatterns.ts";

/** The memory of one pattern of the tests. All of them have the same size. */
const BYTES = newPattern("[0-9]+x1000")?.bytes ?? 0;
const textOf = (number: number) => `[0-9]+x${1000 + number}`;

test("a namespace with many patterns does not remove the patterns of other namespaces", () => {
  const patterns = new NamespacePatterns(10 * BYTES, 30 * BYTES);
  const kept = patterns.of("small")(textOf(0));
  for (let round = 0; round < 3; round += 1) {
    for (let number = 0; number < 100; number += 1) patterns.of("large")(textOf(number));
    expect(patterns.of("small")(textOf(0))).toBe(kept);
  }
  expect(patterns.bytes).toBeLessThanOrEqual(11 * BYTES);
});

test("a namespace keeps its compiled patterns, and shares none with others", () => {
  const patterns = new NamespacePatterns();
  const first = patterns.of("a")("[0-9]+");
  expect(first?.test("7")).toBe(true);
  expect(patterns.of("a")("[0-9]+")).toBe(first);
  expect(patterns.of("b")("[0-9]+")).not.toBe(first);
  expect(patterns.of("a")("(")).toBeUndefined();
});

test("the memory of all namespaces is limited; the namespace that was used least recently is removed", () => {
  const patterns = new NamespacePatterns(10 * BYTES, 30 * BYTES);
  const inUse = patterns.of("0");
  const first = inUse(textOf(0));
  const second = patterns.of("1")(textOf(0));
  for (let number = 2; number < 100; number += 1) {
    const source = patterns.of(String(number));
    for (let pattern = 0; pattern < 9; pattern += 1) source(textOf(pattern));
    patterns.of("0");
    expect(patterns.bytes).toBeLessThanOrEqual(30 * BYTES);
  }
  expect(inUse(textOf(0))).toBe(first);
  expect(patterns.of("1")(textOf(0))).not.toBe(second);
});

test("a source can be used after its namespace was removed, and its patterns still count", () => {
  const patterns = new NamespacePatterns(10 * BYTES, 12 * BYTES);
  const removed = patterns.of("removed");
  removed(textOf(0));
  for (const namespace of ["a", "b"]) {
    for (let number = 0; number < 9; number += 1) patterns.of(namespace)(textOf(number));
  }
  for (let number = 0; number < 100; number += 1) {
    expect(removed(textOf(number))?.test(`7x${1000 + number}`)).toBe(true);
    expect(patterns.bytes).toBeLessThanOrEqual(12 * BYTES);
  }
});
