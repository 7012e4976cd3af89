import type { Diagnostic } from "../../model.ts";
import type { Project } from "../../project/project.ts";
import type { StackConfig } from "../../project/stackConfig.ts";
import { splitWords } from "./nodeArgs.ts";
import { sdkPath } from "./sdkPath.ts";
import { type Child, startNode } from "./sdkProcess.ts";

/** What a program run needs. */
export type ProgramOptions = {
  project: Project;
  stack: string;
  config: StackConfig;
  env: NodeJS.ProcessEnv;
  address: string;
  dryRun: boolean;
  parallel: number;
  onDiagnostic: (diagnostic: Diagnostic) => void;
};

/** The exit code that says: the error was already reported through the engine's log. */
export const REPORTED = 32;

/** Starts the program with the SDK's own runner, as the CLI's language host does. */
export function startProgram(options: ProgramOptions): Child {
  const { project, config } = options;
  const { runtimeOptions } = project;
  const env: NodeJS.ProcessEnv = { ...options.env };
  const texts: Record<string, string> = {};
  const secretKeys: string[] = [];
  for (const [key, { text, secret }] of config.values) {
    texts[key.replace(":", ":config:")] = text;
    if (secret) secretKeys.push(key);
  }
  env.PULUMI_CONFIG = JSON.stringify(texts);
  env.PULUMI_CONFIG_SECRET_KEYS = JSON.stringify(secretKeys);
  if (runtimeOptions.typescript) env.PULUMI_NODEJS_TYPESCRIPT = "true";
  if (runtimeOptions.tsconfig) env.PULUMI_NODEJS_TSCONFIG_PATH = runtimeOptions.tsconfig;
  const args = ["--monitor", options.address, "--engine", options.address, "--organization", "organization"];
  args.push("--project", project.name, "--root-directory", project.root, "--stack", options.stack);
  args.push("--pwd", project.programFolder);
  if (options.dryRun) args.push("--dry-run");
  args.push("--parallel", String(options.parallel), project.entryPoint);
  return startNode(sdkPath(project.programFolder, "cmd/run/index.js"), args, {
    cwd: project.programFolder,
    env,
    nodeArgs: splitWords(runtimeOptions.nodeargs),
    onStdout: (message) => options.onDiagnostic({ severity: "info", message }),
    onStderr: (message) => options.onDiagnostic({ severity: "info", message }),
  });
}
