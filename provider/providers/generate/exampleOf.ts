import { existsSync, readFileSync } from "node:fs";

/**
 * The program of `examples/resources` that shows a resource, or `helpers`. Only who works in the repository has it:
 * the package is without its examples.
 */
export function exampleOf(name: string): string {
  const file = `${name.charAt(0).toLowerCase()}${name.slice(1)}.ts`;
  return readFileSync(new URL(`../../../examples/resources/${file}`, import.meta.url), "utf8").trim();
}

/** By the language that documentation calls them by: how the files of examples/plugin end. */
const LANGUAGES = {
  typescript: "ts",
  python: "py",
  csharp: "cs",
  go: "go",
  java: "java",
  yaml: "yaml",
};

/** The programs of `examples/plugin` that show a resource by the plugin, by language; none for what has no example. */
export function pluginExamplesOf(name: string): Readonly<Record<string, string>> {
  const base = `../../../examples/plugin/${name.charAt(0).toLowerCase()}${name.slice(1)}`;
  return Object.fromEntries(
    Object.entries(LANGUAGES).flatMap(([language, ending]) => {
      const file = new URL(`${base}.${ending}`, import.meta.url);
      return existsSync(file) ? [[language, readFileSync(file, "utf8").trim()]] : [];
    }),
  );
}
