import { readdir, readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { type Command, Option } from "commander";
import { EngineError } from "../engine/index.ts";
import type { TerraformPlan } from "../plan/terraform/readTerraformPlan.ts";
import type { Io } from "./io.ts";

/** The flag that names a plan of Terraform or OpenTofu, as commander gives it. */
export interface TerraformFlags {
  readonly terraform?: string;
}

/**
 * Adds the flag of {@link TerraformFlags}.
 * @param conflicts names of flags that are for Pulumi alone
 */
export function addTerraformFlag(command: Command, about: string, conflicts: readonly string[]): Command {
  return command.addOption(
    new Option(
      "--terraform <file>",
      `${about}, as "terraform show -json" or "tofu show -json" writes it; - for the standard input`,
    ).conflicts([...conflicts]),
  );
}

/**
 * Reads the plan that `--terraform` names.
 * @param folder the root module's
 * @throws EngineError (`plan_file`) where the plan is none, or it or the folder cannot be read
 */
export async function readTerraform(io: Io, folder: string, file: string): Promise<TerraformPlan> {
  const { readTerraformPlan } = await import("../plan/terraform/readTerraformPlan.ts");
  const { isUrlAlone } = await import("../plan/terraform/providerUrls.ts");
  const { workspaceIn } = await import("../terraform/workspace.ts");
  // The policy tests and access.ignore beside the configuration would be missed.
  await readdir(folder).catch(unreadable(folder));
  const name = file === "-" ? "the standard input" : file;
  const written = file === "-" ? await text(io.stdin) : await contentOf(file);
  return readTerraformPlan(written, {
    name,
    workspace: workspaceIn(folder, io.env),
    isUrlAlone: (key, variable) => isUrlAlone(folder, key, variable),
  });
}

/** @throws EngineError (`plan_file`) where the file cannot be read */
export async function contentOf(file: string): Promise<string> {
  return readFile(file, "utf8").catch(unreadable(file));
}

const unreadable =
  (path: string) =>
  (cause: NodeJS.ErrnoException): never => {
    throw new EngineError("plan_file", `Cannot read ${path} (${cause.code})`, { cause });
  };
