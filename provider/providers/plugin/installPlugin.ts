import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pulumiHome } from "../../engine/project.ts";
import { packageFile, packageVersion } from "../../packageFile.ts";

export interface InstalledPlugin {
  readonly version: string;
  /** What the CLI starts. */
  readonly file: string;
}

/**
 * Places the plugin where the Pulumi CLI finds it: a file that starts this installation, by the Node.js that runs now.
 * Installing it again replaces the file.
 * @param env names the CLI's folder by PULUMI_HOME; by default that is `.pulumi` in the home folder that the user database has
 * @throws Error of the file system where the folder cannot be written
 */
export async function installPlugin(env: NodeJS.ProcessEnv): Promise<InstalledPlugin> {
  const version = packageVersion();
  const folder = join(pulumiHome(env), "plugins", `resource-gatehouse-v${version}`);
  await mkdir(folder, { recursive: true });
  const isWindows = process.platform === "win32";
  const file = join(folder, `pulumi-resource-gatehouse${isWindows ? ".cmd" : ""}`);
  const words = [process.execPath, packageFile("bin/pulumi-resource-gatehouse.js")];
  await writeFile(
    file,
    isWindows
      ? `@${words.map((word) => `"${word}"`).join(" ")} %*\r\n`
      : `#!/bin/sh\nexec ${words.map(quoted).join(" ")} "$@"\n`,
  );
  await chmod(file, 0o755);
  return { version, file };
}

const quoted = (word: string) => `'${word.replaceAll("'", `'\\''`)}'`;
