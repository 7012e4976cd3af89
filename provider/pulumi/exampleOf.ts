import { readFileSync } from "node:fs";

/**
 * The program of `examples/resources` that shows a resource, or `helpers`. Only who works in the repository has it:
 * the package is without its examples.
 */
export function exampleOf(name: string): string {
  const file = `${name.charAt(0).toLowerCase()}${name.slice(1)}.ts`;
  return readFileSync(new URL(`../../examples/resources/${file}`, import.meta.url), "utf8").trim();
}
