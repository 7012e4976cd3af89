import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const folder = dirname(createRequire(import.meta.url).resolve("@gatehouse-access/provider/package.json"));

/**
 * The absolute path of a file of this package, the same whether the calling module runs compiled or from its source.
 * @param path below the package's folder
 */
export const packageFile = (path: string): string => join(folder, path);

/** The version of this package. */
export const packageVersion = (): string =>
  (JSON.parse(readFileSync(packageFile("package.json"), "utf8")) as { readonly version: string }).version;
