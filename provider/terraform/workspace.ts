import { readFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";

/** A root module and its workspace, which correspond to a project and a stack. */
export interface Workspace {
  readonly project: string;
  readonly stack: string;
}

/**
 * Returns the workspace that is selected in a directory. Terraform and OpenTofu store the selection in the same file.
 * @param env TF_WORKSPACE overrides the workspace, and TF_DATA_DIR overrides the data directory
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
