import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { type CommandResult, environmentWithout, runCommand } from "../../support/command.ts";
import { spawnGatehouse } from "../../support/gatehouse.ts";

/** The packages of this repository. */
export const MODULES = fileURLToPath(new URL("../../../node_modules", import.meta.url));

/** True if a program is on the PATH. */
export const isOnPath = (name: string): boolean =>
  (process.env.PATH ?? "").split(delimiter).some((folder) => existsSync(join(folder, name)));

/**
 * Returns the title for a test, and whether all required programs are on the PATH. The title of a skipped test contains
 * the reason.
 */
export function requiring(title: string, ...programs: readonly string[]): readonly [string, boolean] {
  const missing = programs.filter((name) => !isOnPath(name));
  return missing.length === 0
    ? [title, true]
    : [`${title} (skipped: there is no ${missing.join(", no ")} on the PATH)`, false];
}

/** Runs a program to its end. */
export async function run(
  program: string,
  args: readonly string[],
  { cwd, env = {} }: { readonly cwd?: string; readonly env?: Record<string, string> } = {},
): Promise<CommandResult> {
  const all = { ...environmentWithout("GATEHOUSE_", "PULUMI_"), ...env };
  const child = spawn(program, args, { env: all, stdio: ["ignore", "pipe", "pipe"], ...(cwd && { cwd }) });
  const ended = once(child, "close") as Promise<[number | null]>;
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { code, stdout, stderr };
}

/** Links the packages of this repository into the folder of a program. */
export const linkModules = (folder: string): void => symlinkSync(MODULES, join(folder, "node_modules"));

/** A user's environment with the Pulumi CLI and the installed plugin. */
export class Machine {
  readonly root = mkdtempSync(join(tmpdir(), "gatehouse-machine-"));
  readonly env: Record<string, string> = {
    PULUMI_HOME: join(this.root, "home"),
    PULUMI_BACKEND_URL: `file://${join(this.root, "states")}`,
    PULUMI_CONFIG_PASSPHRASE: "correct horse battery staple",
    PULUMI_SKIP_UPDATE_CHECK: "true",
  };

  constructor() {
    mkdirSync(join(this.root, "states"));
  }

  /** Installs the plugin with the command of the README. */
  async install(): Promise<void> {
    const installed = await spawnGatehouse(["pulumi", "install"], this.env);
    if (installed.code !== 0) throw new Error(installed.stderr);
  }

  /** Creates a folder with files. */
  folder(name: string, files: Readonly<Record<string, string>>): string {
    const folder = join(this.root, name);
    mkdirSync(folder, { recursive: true });
    for (const [file, content] of Object.entries(files)) writeFileSync(join(folder, file), content);
    return folder;
  }

  /** Runs `pulumi`. @throws Error if its exit code is not `expected` */
  async pulumi(
    args: readonly string[],
    {
      cwd = this.root,
      env = {},
      expected = 0,
    }: { readonly cwd?: string; readonly env?: Record<string, string>; readonly expected?: number } = {},
  ): Promise<CommandResult> {
    const ended = await run("pulumi", args, { cwd, env: { ...this.env, ...env } });
    if (ended.code !== expected) {
      throw new Error(`pulumi ${args.join(" ")} ended with ${ended.code}:\n${ended.stdout}\n${ended.stderr}`);
    }
    return ended;
  }

  /** Returns the folder of the SDK that the CLI generates for a language. */
  async sdk(language: "nodejs" | "python" | "go"): Promise<string> {
    const out = join(this.root, "sdk");
    const folder = join(out, language);
    if (!existsSync(folder)) {
      await this.pulumi(["package", "gen-sdk", "gatehouse", "--language", language, "--out", out]);
    }
    return folder;
  }

  /** Returns the path of the compiled SDK for Node.js, for `require`. */
  async classes(): Promise<string> {
    const folder = await this.sdk("nodejs");
    const built = join(folder, "bin", "index.js");
    if (existsSync(built)) return built;
    linkModules(folder);
    const compiled = await runCommand([join(MODULES, "typescript", "bin", "tsc"), "-p", folder], {
      cwd: folder,
      env: process.env,
    });
    if (compiled.code !== 0) throw new Error(compiled.stdout);
    // The package.json from which the compiled SDK reads its version at run time.
    writeFileSync(join(folder, "bin", "package.json"), JSON.stringify({ version: "0.1.0" }));
    return built;
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}
