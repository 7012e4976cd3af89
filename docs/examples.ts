import { fileURLToPath } from "node:url";

/** The file of a resource's example. */
export function exampleOf(resource: string): string {
  const file = `${resource.charAt(0).toLowerCase()}${resource.slice(1)}.ts`;
  return fileURLToPath(new URL(`../examples/resources/${file}`, import.meta.url));
}
