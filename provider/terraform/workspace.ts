import { readFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";

/** A root module and its workspace, which are what a project and a stack are elsewhere. */
export interface Workspace {
  readonly project: string;
  readonly stack: string;
}

/**
 * The workspace that is selected in a folder: Terraform and OpenTofu keep it in the same file.
 * @param env names another one, or another data folder, as for these programs
 */
export function workspaceIn(folder: string, env: NodeJS.ProcessEnv): Workspace {
  const stack = env.TF_WORKSPACE || selectedIn(env.TF_DATA_DIR || join(folder, ".terraform")) || "default";
  return { project: basename(resolve(folder)) || "terraform", stack };
}

function selectedIn(dataFolder: string): string | undefined {
  try {
    return readFileSync(join(dataFolder, "environment"), "utf8").trim();
  } catch {
    // Without the file it is the default one.
    return undefined;
  }
}
