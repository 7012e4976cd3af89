import { chmod, copyFile, mkdir } from "node:fs/promises";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { EngineError, findOnPath } from "../engine/index.ts";
import { packageFile, packageVersion } from "../packageFile.ts";
import { type Choice, SOURCE, TERRAFORM_CLIS, type TerraformCli } from "./source.ts";

/**
 * The programs that a command is for: those of `--for`, or those on the PATH, or both where neither is. Gatehouse itself
 * starts none of them.
 */
export function clisFor(env: NodeJS.ProcessEnv, choice?: Choice): readonly TerraformCli[] {
  const all = Object.values(TERRAFORM_CLIS);
  if (choice === "both") return all;
  if (choice !== undefined) return [TERRAFORM_CLIS[choice]];
  const found = all.filter(({ command }) => findOnPath(command, env) !== undefined);
  return found.length > 0 ? found : all;
}

export interface InstalledProvider {
  readonly version: string;
  /** The file that each program starts. */
  readonly files: readonly { readonly program: TerraformCli; readonly file: string }[];
  /** The mirror. */
  readonly folder: string;
}

/**
 * Installs the provider in a mirror of the file system, which has a folder for each program's registry host.
 * @param env names the home folder by HOME
 * @param mirror the folder; omitted: the one in the home folder, which both programs search by default
 * @throws Error on Windows, which starts no script as a program, and of the file system where the folder cannot be written
 */
export async function installProvider(
  env: NodeJS.ProcessEnv,
  programs: readonly TerraformCli[],
  mirror?: string,
): Promise<InstalledProvider> {
  if (process.platform === "win32") {
    throw new EngineError(
      "install",
      "The provider is a script, and Terraform and OpenTofu on Windows start no scripts.",
      { remedy: "Use it in WSL, or use Pulumi." },
    );
  }
  const version = packageVersion();
  const folder =
    mirror === undefined ? join(env.HOME || homedir(), ".terraform.d", "plugins") : resolve(mirror);
  // The same file everywhere: lock files have its digest.
  const built = packageFile("dist/terraform/terraform-provider-gatehouse");
  const files = programs.map(async (program) => {
    const target = join(folder, program.host, SOURCE, version, platformName());
    const file = join(target, `terraform-provider-gatehouse_v${version}`);
    await mkdir(target, { recursive: true });
    await copyFile(built, file);
    await chmod(file, 0o755);
    await copyFile(`${built}.LICENSES.txt`, join(target, "LICENSES.txt"));
    return { program, file };
  });
  return { version, files: await Promise.all(files), folder };
}

/** The settings of a program that make it search the mirror. */
export const mirrorText = (folder: string) => `provider_installation {
  filesystem_mirror {
    path    = ${JSON.stringify(folder)}
    include = ["${SOURCE}"]
  }
  direct {
    exclude = ["${SOURCE}"]
  }
}
`;

/** This machine as Terraform names it, as in `linux_amd64`. */
function platformName(): string {
  const { platform, arch } = process;
  return `${platform}_${arch === "x64" ? "amd64" : arch}`;
}
