import { EmbeddedStack } from "./embedded/embeddedStack.ts";
import { NoEngineError } from "./errors.ts";
import { findOnPath } from "./findOnPath.ts";
import { readProject } from "./project/project.ts";
import type { Stack, StackOptions } from "./stack.ts";

/**
 * Opens a stack with the engine asked for; without one, with the Pulumi CLI where it is installed.
 * @throws NoEngineError, ProjectError, BackendError, StackSelectionError, UnsupportedError
 */
export async function openStack(options: StackOptions = {}): Promise<Stack> {
  const env = options.env ?? process.env;
  const project = await readProject(options.folder ?? ".");
  if (options.engine === "embedded") return EmbeddedStack.open(project, options);
  if (findOnPath("pulumi", env) === undefined) throw new NoEngineError(project.runtime);
  // The CLI's side of the SDK is large: not loaded where it is not needed.
  const { CliStack } = await import("./cli/cliStack.ts");
  return CliStack.open(project, options);
}
