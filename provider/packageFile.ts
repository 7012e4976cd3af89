import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const folder = dirname(createRequire(import.meta.url).resolve("@gatehouse-access/provider/package.json"));

/**
 * The absolute path of a file of this package, the same whether the calling module runs compiled or from its source.
 * @param path below the package's folder
 */
export const packageFile = (path: string): string => join(folder, path);

/** What this package says of itself. */
interface Manifest {
  readonly version: string;
  /** The packages that programs need beside it, and the releases of them. */
  readonly peerDependencies: Readonly<Record<string, string>>;
}

export const packageManifest = (): Manifest =>
  JSON.parse(readFileSync(packageFile("package.json"), "utf8")) as Manifest;

export const packageVersion = (): string => packageManifest().version;
