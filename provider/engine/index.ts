import { EmbeddedStack } from "./embedded/embeddedStack.ts";
import { EngineError, NoEngineError } from "./errors.ts";
import { ENGINES, type EngineName, type Stack, type StackOptions } from "./model.ts";
import { findOnPath } from "./processes.ts";
import { readProject } from "./project.ts";

export { makeUrn, OWN_DYNAMIC, OWN_PLUGIN, STACK_TYPE, typeName, urnName, urnType } from "../urn.ts";
export * from "./errors.ts";
export { ifThere, writeDurably } from "./files.ts";
export * from "./model.ts";
export { ENDING_SIGNALS, findOnPath } from "./processes.ts";
export { backendUrlOf, type Project, parseStackName, readProject, stackFilePath } from "./project.ts";
export { fieldDiff, refreshedFields, shownValues } from "./value.ts";

/**
 * Opens a stack with the selected engine. The default is the engine in `GATEHOUSE_ENGINE`, or else the Pulumi CLI.
 * @throws EngineError (`usage`) if `GATEHOUSE_ENGINE` is invalid; NoEngineError, ProjectError, BackendError,
 *   StackSelectionError, UnsupportedError
 */
export async function openStack(options: StackOptions = {}): Promise<Stack> {
  const env = withDirectGrpc(options.env ?? process.env);
  const project = await readProject(options.folder ?? ".");
  if (selectedEngine(options.engine, env) === "embedded")
    return EmbeddedStack.open(project, { ...options, env });
  if (findOnPath("pulumi", env) === undefined) throw new NoEngineError(project.runtime);
  // The module is loaded on demand, because it loads the large Automation API.
  const { CliStack } = await import("./cli/cliStack.ts");
  return CliStack.open(project, { ...options, env });
}

/**
 * Returns the engine of a run: the given engine, the engine in `GATEHOUSE_ENGINE`, or the Pulumi CLI, in this order.
 * @throws EngineError (`usage`) if `GATEHOUSE_ENGINE` is invalid
 */
export function selectedEngine(
  given: EngineName | undefined,
  { GATEHOUSE_ENGINE: name }: NodeJS.ProcessEnv,
): EngineName {
  if (given !== undefined || !name) return given ?? "cli";
  const engine = ENGINES.find((known) => known === name);
  if (engine !== undefined) return engine;
  throw new EngineError(
    "usage",
    `GATEHOUSE_ENGINE cannot be "${name}". Choose one of ${ENGINES.join(", ")}.`,
  );
}

/**
 * Returns the environment with 127.0.0.1 added to `no_grpc_proxy`. The program connects to the engine at this address,
 * and must not use a proxy for it.
 */
function withDirectGrpc(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const others = env.no_grpc_proxy || env.no_proxy;
  return { ...env, no_grpc_proxy: others ? `${others},127.0.0.1` : "127.0.0.1" };
}
