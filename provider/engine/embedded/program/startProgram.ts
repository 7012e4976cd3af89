import { ProjectError } from "../../errors.ts";
import type { RunLog } from "../../runLog.ts";
import { type ProcessSettings, type SdkProcess, startSdkProcess } from "./sdkProcess.ts";

/** What a run of the program is given. */
interface ProgramSettings extends ProcessSettings {
  readonly dryRun: boolean;
  readonly parallel: number;
}

/** The exit code of a program that has reported its error by the engine's log. */
export const REPORTED = 32;

/**
 * Starts the program with the SDK's own runner, as the language host of the CLI does.
 * @param address of the server that the program registers its resources at
 * @param log gets the lines that the program prints
 * @throws ProjectError where no SDK is installed, or `nodeargs` cannot be understood
 */
export function startProgram(settings: ProgramSettings, address: string, log: RunLog): SdkProcess {
  const { project, config } = settings;
  const { runtimeOptions } = project;
  const values = [...config.values];
  const env: NodeJS.ProcessEnv = {
    ...settings.env,
    PULUMI_CONFIG: JSON.stringify(
      Object.fromEntries(values.map(([key, { text }]) => [key.replace(":", ":config:"), text])),
    ),
    PULUMI_CONFIG_SECRET_KEYS: JSON.stringify(values.filter(([, { secret }]) => secret).map(([key]) => key)),
  };
  if (runtimeOptions.typescript) env.PULUMI_NODEJS_TYPESCRIPT = "true";
  if (runtimeOptions.tsconfig) env.PULUMI_NODEJS_TSCONFIG_PATH = runtimeOptions.tsconfig;
  const args = ["--monitor", address, "--engine", address, "--organization", "organization"];
  args.push("--project", project.name, "--root-directory", project.root, "--stack", settings.stack);
  args.push("--pwd", project.programFolder);
  if (settings.dryRun) args.push("--dry-run");
  args.push("--parallel", String(settings.parallel), project.entryPoint);
  const onLine = (message: string): void => log.diagnostic({ severity: "info", message });
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
