import { chmod, copyFile, mkdir } from "node:fs/promises";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { EngineError, findOnPath } from "../engine/index.ts";
import { packageFile, packageVersion } from "../packageFile.ts";
import { type Choice, SOURCE, TERRAFORM_CLIS, type TerraformCli } from "./source.ts";

/**
 * Returns the CLIs to which a command applies: the CLIs in `--for`, or the CLIs on the PATH. If neither Terraform nor
 * OpenTofu is on the PATH, returns both, because Gatehouse itself does not start the CLIs.
 */
export function clisFor(env: NodeJS.ProcessEnv, choice?: Choice): readonly TerraformCli[] {
  const all = Object.values(TERRAFORM_CLIS);
  if (choice === "both") return all;
  if (choice !== undefined) return [TERRAFORM_CLIS[choice]];
  const found = all.filter(({ command }) => findOnPath(command, env) !== undefined);
  return found.length > 0 ? found : all;
}

interface InstalledProvider {
  readonly version: string;
  /** The installed provider file for each CLI. */
  readonly files: readonly { readonly program: TerraformCli; readonly file: string }[];
  /** The folder of the mirror. */
  readonly folder: string;
}

/**
 * Installs the provider in a filesystem mirror. The mirror contains a directory for the registry host of each CLI.
 * @param env contains `HOME`, the home directory
 * @param mirror the directory of the mirror; default: the mirror in the home directory, which both CLIs search by
 *   default
 * @throws Error on Windows, which cannot start scripts as programs, and if the directory cannot be written
 */
export async function installProvider(
  env: NodeJS.ProcessEnv,
  programs: readonly TerraformCli[],
  mirror?: string,
): Promise<InstalledProvider> {
  if (process.platform === "win32") {
    throw new EngineError(
      "install",
      "Cannot install the provider: it is a script, and Terraform and OpenTofu cannot start scripts on Windows.",
      { remedy: "Use it in WSL, or use Pulumi." },
    );
  }
  const version = packageVersion();
  const folder =
    mirror === undefined ? join(env.HOME || homedir(), ".terraform.d", "plugins") : resolve(mirror);
  // The file must have the same content on every platform, because lock files contain its digest.
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

/** Returns the CLI settings that make the CLI search the mirror. */
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

/** Returns Terraform's name of this platform, such as `linux_amd64`. */
function platformName(): string {
  const { platform, arch } = process;
  return `${platform}_${arch === "x64" ? "amd64" : arch}`;
}
