import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { z } from "zod";
import { pages, schemaFiles } from "../docs/pages.ts";
import { classSource } from "../provider/pulumi/classSource.ts";
import { defineResource, optional, output } from "../provider/resources/definition.ts";
import { definitions } from "../provider/resources/index.ts";

it.each(Object.entries(pages()))("docs/%s is what the definitions say (else: npm run docs)", (name, text) => {
  expect(readFileSync(new URL(`../docs/${name}`, import.meta.url), "utf8")).toBe(text);
});

it.each(Object.entries(schemaFiles()))("provider/schemas/%s is what the types say", (name, text) => {
  expect(readFileSync(new URL(`../provider/schemas/${name}`, import.meta.url), "utf8")).toBe(text);
});

it("every field of every resource is described", () => {
  const rows =
    pages()
      ["resources.md"]?.split("\n")
      .filter((line) => line.startsWith("| `")) ?? [];
  expect(rows.length).toBeGreaterThan(20);
  for (const row of rows) expect(row).toMatch(/\S[^|]* \|$/);
});

const described = (inner: z.ZodType, description: string, outer = "An input.") =>
  defineResource({
    ...definitions[0],
    name: "Thing",
    inputs: { input: optional(z.object({ inner }), { description: outer }) },
    outputs: { output: output(z.string(), { description }) },
  } as never) as never;

it("the build fails where a field has no description, naming it", () => {
  expect(() => classSource([described(z.string().describe("A member."), "An output.")])).not.toThrow();
  expect(() => classSource([described(z.string().describe("A member."), "")])).toThrow(
    "Thing.output needs a description",
  );
  expect(() => classSource([described(z.string().describe("A member."), "An output.", " ")])).toThrow(
    "Thing.input needs a description",
  );
  expect(() => classSource([described(z.string(), "An output.")])).toThrow("inner needs a description");
});
