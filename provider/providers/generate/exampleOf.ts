import { existsSync, readFileSync } from "node:fs";

/**
 * The program of `examples/resources` that shows a resource, or `helpers`. Only who works in the repository has it:
 * the package is without its examples.
 */
export function exampleOf(name: string): string {
  const file = `${name.charAt(0).toLowerCase()}${name.slice(1)}.ts`;
  return readFileSync(new URL(`../../../examples/resources/${file}`, import.meta.url), "utf8").trim();
}

/** The programs of `examples/plugin` that use a resource by the plugin, by language; none for a resource without examples. */
export function pluginExamplesOf(name: string): Readonly<Record<string, string>> {
  const page = `${name.charAt(0).toLowerCase()}${name.slice(1)}.md`;
  const file = new URL(`../../../examples/plugin/${page}`, import.meta.url);
  return existsSync(file) ? codeBlocks(readFileSync(file, "utf8")) : {};
}

/** The code blocks of a page in Markdown, by language. */
export const codeBlocks = (page: string): Record<string, string> =>
  Object.fromEntries(
    [...page.matchAll(/^```(\w+)\n(.*?)\n```$/gms)].map(([, language = "", text = ""]) => [language, text]),
  );
