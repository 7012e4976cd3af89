import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const folder = dirname(createRequire(import.meta.url).resolve("@gatehouse-access/server/package.json"));

/**
 * Returns the absolute path of a file of this package, for modules that run compiled or from source.
 * @param path relative to the package's folder
 */
export const packageFile = (path: string): string => join(folder, path);

/** Returns the version of this package. */
export function packageVersion(): string {
  const text = readFileSync(packageFile("package.json"), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}
