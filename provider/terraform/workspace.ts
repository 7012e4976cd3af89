import { readFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";

/** A root module and its workspace, which correspond to a project and a stack. */
export interface Workspace {
  readonly project: string;
  readonly stack: string;
}

/**
 * Returns the workspace that is selected in a directory. Terraform and OpenTofu store the selection in the same file.
 * @param env `TF_WORKSPACE` overrides the workspace, and `TF_DATA_DIR` overrides the data directory
 * @param project the {@link namedProject}; default: the base name of the directory, which can be equal for several root
 *   modules
 */
export function workspaceIn(
  folder: string,
  env: NodeJS.ProcessEnv,
  project: string | undefined = namedProject(undefined, env),
): Workspace {
  const stack = env.TF_WORKSPACE || selectedIn(dataFolderOf(folder, env)) || "default";
  return { project: project ?? (basename(resolve(folder)) || "terraform"), stack };
}

/**
 * Returns the project that a setting specifies. Returns undefined if no setting specifies a project. Root modules whose
 * directories have the same base name are then treated as one project.
 * @param inBlock the argument `project` of the provider block, which takes precedence over the environment
 */
export const namedProject = (inBlock: unknown, env: NodeJS.ProcessEnv): string | undefined =>
  (typeof inBlock === "string" && inBlock) || env.GATEHOUSE_PROJECT || undefined;

/** Returns Terraform's data directory of a root module. @param env `TF_DATA_DIR` overrides the directory */
export const dataFolderOf = (folder: string, env: NodeJS.ProcessEnv): string =>
  env.TF_DATA_DIR || join(folder, ".terraform");

function selectedIn(dataFolder: string): string | undefined {
  try {
    return readFileSync(join(dataFolder, "environment"), "utf8").trim();
  } catch {
    // If the file does not exist, the default workspace is selected.
    return undefined;
  }
}
