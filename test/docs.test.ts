import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { pages, schemaFiles } from "../docs/generate/pages.ts";
import { policyTestExamples } from "../docs/generate/policyTestApiPage.ts";
import { requestSentences, SENTENCES_FILE } from "../docs/generate/requestSentences.ts";
import { defineResource } from "../provider/model/defineResource.ts";
import { optional, output } from "../provider/model/fields.ts";
import { classSource } from "../provider/providers/generate/classSource.ts";
import { exampleOf } from "../provider/providers/generate/exampleOf.ts";
import { definitions, kindsWith } from "../provider/resources/index.ts";

const texts = await pages();

it.each(Object.entries(texts))("docs/%s matches the definitions (if not: npm run docs)", (name, text) => {
  expect(readFileSync(new URL(`../docs/${name}`, import.meta.url), "utf8")).toBe(text);
});

it("no generated page contains the host name of the machine", () => {
  expect(Object.entries(texts).filter(([, text]) => text.includes(`"${hostname()}"`))).toEqual([]);
});

it.each(Object.entries(schemaFiles()))("provider/schemas/%s matches the types", (name, text) => {
  expect(readFileSync(new URL(`../provider/schemas/${name}`, import.meta.url), "utf8")).toBe(text);
});

it("sdk/requestSentences.ts has the sentences of the errors of requests (else: npm run docs)", () => {
  const file = new URL(SENTENCES_FILE, new URL("../docs/generate/", import.meta.url));
  expect(readFileSync(file, "utf8")).toBe(requestSentences());
});

it("the guide of drift has the kinds of access.ignore", () => {
  const guide = readFileSync(new URL("../docs/guides/drift.md", import.meta.url), "utf8");
  const [, section = ""] = guide.split("## access.ignore");
  const rows = section.split("## ")[0]?.match(/^\| `.*?\|/gm) ?? [];
  const named = rows.flatMap((row) => Array.from(row.matchAll(/`(\w+)`/g), ([, kind]) => kind));
  expect(named.sort()).toEqual(
    kindsWith("watched")
      .map(({ definition }) => definition.name)
      .sort(),
  );
});

it("every field of every resource has a description", () => {
  const rows = texts["reference/resources.md"]?.split("\n").filter((line) => line.startsWith("| `")) ?? [];
  expect(rows.length).toBeGreaterThan(20);
  for (const row of rows) expect(row).toMatch(/\S[^|]* \|$/);
});

it("the examples in the doc comments of the policy-test API compile", () => {
  const file = fileURLToPath(new URL("../examples/fleet-access/examples.policy.ts", import.meta.url));
  const source = [
    'import { expect, policyTest, untested } from "@gatehouse-access/provider/policy";',
    'policyTest("examples", ({ access, members, apiKeys, policy, settings }) => {',
    ...policyTestExamples(),
    "});",
  ].join("\n");
  const options = {
    module: ts.ModuleKind.NodeNext,
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    types: ["node"],
  };
  const host = ts.createCompilerHost(options);
  const { getSourceFile } = host;
  host.getSourceFile = (name, version, ...rest) =>
    name === file ? ts.createSourceFile(name, source, version) : getSourceFile(name, version, ...rest);
  const diagnostics = ts.getPreEmitDiagnostics(ts.createProgram([file], options, host));
  expect(diagnostics.map(({ messageText }) => messageText)).toEqual([]);
  expect(policyTestExamples().length).toBeGreaterThan(6);
});

const described = (inner: z.ZodType, description: string, outer = "An input.") =>
  defineResource({
    ...definitions[0],
    name: "Thing",
    inputs: { input: optional(z.object({ inner }), { description: outer }) },
    outputs: { output: output(z.string(), { description }) },
  } as never) as never;

it("the build rejects a field without a description, and reports its name", () => {
  const build = (...parts: Parameters<typeof described>) => classSource([described(...parts)], () => "");
  const member = z.string().describe("A member.");
  expect(() => build(member, "An output.")).not.toThrow();
  expect(() => build(member, "")).toThrow("Thing.output needs a description");
  expect(() => build(member, "An output.", " ")).toThrow("Thing.input needs a description");
  expect(() => build(z.string(), "An output.")).toThrow("inner needs a description");
});

describe.each(definitions.map((definition) => ({ name: definition.name, definition })))(
  "the class $name",
  ({ name, definition }) => {
    const source = classSource([definition], exampleOf);
    /** Returns the lines of the doc comment before a piece of code. */
    const commentBefore = (code: string) => {
      const before = source.slice(0, source.indexOf(`\n${code}`));
      return before
        .slice(before.lastIndexOf("/**"))
        .split("\n")
        .map((line) => line.replace(/^ *\* ?/, ""));
    };

    it("shows the program of examples/resources", () => {
      const comment = commentBefore(`export class ${name} `).join("\n");
      expect(comment).toContain(`@example\n\`\`\`ts\n${exampleOf(name)}\n\`\`\`\n`);
    });

    it("shows an import by an id that the resource accepts", () => {
      const { id, inputs, outputs } = definition;
      expect(commentBefore(`export class ${name} `)).toContain(
        `new ${name}("imported", args, { import: "${id.example}" });`,
      );
      const values = id.example.split("/");
      for (const [index, part] of id.text.split("/").entries()) {
        const { schema } = inputs[part] ?? outputs[part] ?? {};
        expect(schema?.safeParse(values[index]), part).toMatchObject({ success: true });
      }
    });

    it("documents the default of every input that has one", () => {
      for (const [input, field] of Object.entries(definition.inputs)) {
        const tags = commentBefore(`  ${input}${field.required ? "" : "?"}: `).filter((line) =>
          /@default/.test(line),
        );
        expect(tags, input).toEqual(
          field.default === undefined ? [] : [`@default ${JSON.stringify(field.default)}`],
        );
      }
    });
  },
);
