import { ProjectError } from "../../errors.ts";
import type { Diagnostic } from "../../model.ts";
import type { Project } from "../../project/project.ts";
import type { StackConfig } from "../../project/stackConfig.ts";
import { type SdkProcess, startSdkProcess } from "./sdkProcess.ts";

/** What a run of the program is given. */
export interface ProgramOptions {
  readonly project: Project;
  readonly stack: string;
  readonly config: StackConfig;
  readonly env: NodeJS.ProcessEnv;
  /** Address of the server that the program registers its resources at. */
  readonly address: string;
  readonly dryRun: boolean;
  readonly parallel: number;
  readonly onDiagnostic: (diagnostic: Diagnostic) => void;
}

/** The exit code of a program that has reported its error by the engine's log. */
export const REPORTED = 32;

/**
 * Starts the program with the SDK's own runner, as the language host of the CLI does.
 * @throws ProjectError where no SDK is installed, or `nodeargs` cannot be understood
 */
export function startProgram(options: ProgramOptions): SdkProcess {
  const { project, config, address } = options;
  const { runtimeOptions } = project;
  const values = [...config.values];
  const env: NodeJS.ProcessEnv = {
    ...options.env,
    PULUMI_CONFIG: JSON.stringify(
      Object.fromEntries(values.map(([key, { text }]) => [key.replace(":", ":config:"), text])),
    ),
    PULUMI_CONFIG_SECRET_KEYS: JSON.stringify(values.filter(([, { secret }]) => secret).map(([key]) => key)),
  };
  if (runtimeOptions.typescript) env.PULUMI_NODEJS_TYPESCRIPT = "true";
  if (runtimeOptions.tsconfig) env.PULUMI_NODEJS_TSCONFIG_PATH = runtimeOptions.tsconfig;
  const args = ["--monitor", address, "--engine", address, "--organization", "organization"];
  args.push("--project", project.name, "--root-directory", project.root, "--stack", options.stack);
  args.push("--pwd", project.programFolder);
  if (options.dryRun) args.push("--dry-run");
  args.push("--parallel", String(options.parallel), project.entryPoint);
  const onLine = (message: string): void => options.onDiagnostic({ severity: "info", message });
  return startSdkProcess({
    programFolder: project.programFolder,
    script: "cmd/run/index.js",
    args,
    env,
    nodeArgs: splitWords(runtimeOptions.nodeargs),
    onStdout: onLine,
    onStderr: onLine,
  });
}

/**
 * Splits a command line into words: blanks divide, single and double quotes group, a backslash takes the next
 * character as it is (not inside single quotes).
 * @throws ProjectError for a quote that is not closed
 */
export function splitWords(text: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  let quote = "";
  for (let i = 0; i < text.length; i++) {
    const char = text[i] as string;
    if (char === "\\" && quote !== "'") {
      word = (word ?? "") + (text[++i] ?? "");
    } else if (quote !== "") {
      if (char === quote) quote = "";
      else word += char;
    } else if (char === "'" || char === '"') {
      quote = char;
      word ??= "";
    } else if (/\s/.test(char)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else word = (word ?? "") + char;
  }
  if (quote !== "") throw new ProjectError(`A quote is not closed in nodeargs: ${text}`);
  if (word !== undefined) words.push(word);
  return words;
}
