import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { pages } from "../docs/pages.ts";

it.each(Object.entries(pages()))("docs/%s is what the definitions say (else: npm run docs)", (name, text) => {
  expect(readFileSync(new URL(`../docs/${name}`, import.meta.url), "utf8")).toBe(text);
});

it("every field of every resource is described", () => {
  const rows =
    pages()
      ["resources.md"]?.split("\n")
      .filter((line) => line.startsWith("| `")) ?? [];
  expect(rows.length).toBeGreaterThan(20);
  for (const row of rows) expect(row).toMatch(/\S[^|]* \|$/);
});
