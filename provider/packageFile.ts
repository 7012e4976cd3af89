import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const folder = dirname(createRequire(import.meta.url).resolve("@gatehouse-access/provider/package.json"));

/**
 * Returns the absolute path of a file in this package. The path does not depend on whether the code is compiled.
 * @param path relative to the package's folder
 */
export const packageFile = (path: string): string => join(folder, path);

/** The fields of this package's `package.json` that the provider uses. */
interface Manifest {
  readonly version: string;
  /** The peer dependencies and their version ranges. Users must install these packages in addition to this package. */
  readonly peerDependencies: Readonly<Record<string, string>>;
}

export const packageManifest = (): Manifest =>
  JSON.parse(readFileSync(packageFile("package.json"), "utf8")) as Manifest;

export const packageVersion = (): string => packageManifest().version;
