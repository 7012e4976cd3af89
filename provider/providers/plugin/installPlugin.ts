import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pulumiHome } from "../../engine/project.ts";
import { packageFile, packageVersion } from "../../packageFile.ts";

interface InstalledPlugin {
  readonly version: string;
  /** The name of the plugin file that the Pulumi CLI starts. */
  readonly file: string;
}

/**
 * Installs the plugin for the Pulumi CLI. The installed file starts this copy of the package with the Node.js
 * executable of the current process. A repeated installation replaces the file.
 * @param env the environment. It may contain `PULUMI_HOME`, the CLI's directory. Otherwise, the directory is `.pulumi`
 *   in the user's home directory, as the user database of the operating system defines it
 * @throws Error if the directory cannot be written
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
