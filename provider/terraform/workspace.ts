import { readFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";

/** A root module and its workspace, which correspond to a project and a stack. */
export interface Workspace {
  readonly project: string;
  readonly stack: string;
}

/**
 * Returns the workspace that is selected in a folder. Terraform and OpenTofu store it in the same file.
 * @param env may contain another workspace or data folder, in the variables of these CLIs
 */
export function workspaceIn(folder: string, env: NodeJS.ProcessEnv): Workspace {
  const stack = env.TF_WORKSPACE || selectedIn(env.TF_DATA_DIR || join(folder, ".terraform")) || "default";
  return { project: basename(resolve(folder)) || "terraform", stack };
}

function selectedIn(dataFolder: string): string | undefined {
  try {
    return readFileSync(join(dataFolder, "environment"), "utf8").trim();
  } catch {
    // Without the file, the default workspace is selected.
    return undefined;
  }
}
