import { chmod, copyFile, mkdir } from "node:fs/promises";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { packageFile, packageVersion } from "../packageFile.ts";
import { SOURCE } from "./source.ts";

/** The registry of providers whose address names none. */
const REGISTRY = "registry.terraform.io";

/** A provider that was installed. */
export interface InstalledProvider {
  readonly version: string;
  /** What Terraform starts. */
  readonly file: string;
  /** The mirror. */
  readonly folder: string;
  /** True for a folder that Terraform looks into by itself. */
  readonly isImplied: boolean;
}

/**
 * Places the provider in a mirror of the file system, as Terraform names its folders.
 * @param env names the home folder by HOME
 * @param mirror the folder; left out: that in the home folder, into which Terraform looks by itself
 * @throws Error on Windows, which starts no script as a program, and of the file system where the folder cannot be written
 */
export async function installProvider(env: NodeJS.ProcessEnv, mirror?: string): Promise<InstalledProvider> {
  if (process.platform === "win32") {
    throw new Error(
      "the Terraform provider is a script, and Terraform on Windows starts none; use it in WSL, or Pulumi",
    );
  }
  const version = packageVersion();
  const folder =
    mirror === undefined ? join(env.HOME || homedir(), ".terraform.d", "plugins") : resolve(mirror);
  const target = join(folder, REGISTRY, SOURCE, version, platformName());
  const file = join(target, `terraform-provider-gatehouse_v${version}`);
  const built = packageFile("dist/terraform/terraform-provider-gatehouse");
  await mkdir(target, { recursive: true });
  // The same everywhere: Terraform's lock files have a digest of it.
  await copyFile(built, file);
  await chmod(file, 0o755);
  await copyFile(`${built}.LICENSES.txt`, join(target, "LICENSES.txt"));
  return { version, file, folder, isImplied: mirror === undefined };
}

/** This machine as Terraform names it, as in `linux_amd64`. */
function platformName(): string {
  const { platform, arch } = process;
  return `${platform}_${arch === "x64" ? "amd64" : arch}`;
}
