import { existsSync, readFileSync } from "node:fs";

/**
 * Returns the example program in `examples/resources` for the resource or module with this name. Works only in the
 * repository, because the package does not contain the examples.
 * @param name the name of a resource, or `helpers`
 */
export function exampleOf(name: string): string {
  const file = `${name.charAt(0).toLowerCase()}${name.slice(1)}.ts`;
  return readFileSync(new URL(`../../../examples/resources/${file}`, import.meta.url), "utf8").trim();
}

/**
 * Returns the programs in `examples/plugin` for a resource, by language. Returns an empty object for a resource without
 * examples.
 */
export function pluginExamplesOf(name: string): Readonly<Record<string, string>> {
  const page = `${name.charAt(0).toLowerCase()}${name.slice(1)}.md`;
  const file = new URL(`../../../examples/plugin/${page}`, import.meta.url);
  return existsSync(file) ? codeBlocks(readFileSync(file, "utf8")) : {};
}

/** Returns the code blocks of a Markdown page, by language. */
export const codeBlocks = (page: string): Record<string, string> =>
  Object.fromEntries(
    [...page.matchAll(/^```(\w+)\n(.*?)\n```$/gms)].map(([, language = "", text = ""]) => [language, text]),
  );
