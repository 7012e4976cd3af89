import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { ProjectError } from "../../errors.ts";

/**
 * A file of the @pulumi/pulumi that the program itself uses. Throws ProjectError where the program's folder has
 * none installed.
 */
export function sdkPath(programFolder: string, path: string): string {
  const resolver = createRequire(join(programFolder, "index.js"));
  let manifest: string;
  try {
    manifest = resolver.resolve("@pulumi/pulumi/package.json");
  } catch {
    throw new ProjectError(
      `@pulumi/pulumi is not installed for the program in ${programFolder}: run npm install.`,
    );
  }
  const found = join(dirname(manifest), path);
  if (!existsSync(found)) throw new ProjectError(`${found} is missing: @pulumi/pulumi is not complete.`);
  return found;
}
