import { EmbeddedStack } from "./embedded/embeddedStack.ts";
import { NoEngineError } from "./errors.ts";
import type { Stack, StackOptions } from "./model.ts";
import { findOnPath } from "./processes.ts";
import { readProject } from "./project.ts";

export { makeUrn, OWN_DYNAMIC, OWN_PLUGIN, ownTypeName, typeName, urnName, urnType } from "../urn.ts";
export * from "./errors.ts";
export { ifThere, writeDurably } from "./files.ts";
export * from "./model.ts";
export { ENDING_SIGNALS, findOnPath, signalGroup, startInGroup } from "./processes.ts";
export { backendUrlOf, type Project, parseStackName, readProject, stackFilePath } from "./project.ts";
export { fieldDiff, refreshedFields, shownValues } from "./value.ts";

/**
 * Opens a stack with the selected engine. Default: the Pulumi CLI, if it is installed.
 * @throws NoEngineError, ProjectError, BackendError, StackSelectionError, UnsupportedError
 */
export async function openStack(options: StackOptions = {}): Promise<Stack> {
  const env = withDirectGrpc(options.env ?? process.env);
  const project = await readProject(options.folder ?? ".");
  if (options.engine === "embedded") return EmbeddedStack.open(project, { ...options, env });
  if (findOnPath("pulumi", env) === undefined) throw new NoEngineError(project.runtime);
  // Loaded on demand, since the Automation API is large.
  const { CliStack } = await import("./cli/cliStack.ts");
  return CliStack.open(project, { ...options, env });
}

/**
 * Adds 127.0.0.1 to the addresses that gRPC calls without a proxy, since a program calls its engine at this address.
 */
function withDirectGrpc(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const others = env.no_grpc_proxy || env.no_proxy;
  return { ...env, no_grpc_proxy: others ? `${others},127.0.0.1` : "127.0.0.1" };
}
