import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { packageFile } from "../../../packageFile.ts";
import { ProjectError } from "../../errors.ts";
import { signalGroup, startInGroup } from "../../processes.ts";
import type { Project, StackConfig } from "../../project.ts";
import type { RunLog } from "../../runLog.ts";

/** Delay between SIGTERM and SIGKILL, in milliseconds. */
const GRACE = 2000;

export interface SdkProcess {
  /**
   * A promise of the exit code. It resolves after the process has exited and all of its output has been read. If a
   * signal ended the process, the exit code is 128.
   */
  readonly exited: Promise<number>;
  /**
   * Sends SIGTERM to the process and its descendants. If they do not exit in time, sends SIGKILL. Resolves after the
   * process has exited.
   */
  stop(): Promise<void>;
}

export interface ProcessSettings {
  readonly project: Project;
  readonly stack: string;
  readonly config: StackConfig;
  readonly env: NodeJS.ProcessEnv;
}

interface SdkProcessOptions {
  /** Directory of the Pulumi program, which contains the installed SDK. */
  readonly programFolder: string;
  /** Path of the script, relative to the directory of the SDK. */
  readonly script: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly nodeArgs?: readonly string[];
  /** Additional modules that the process loads before the script. They are in the folder of this file. */
  readonly loadedFirst?: readonly "ownPackage"[];
  readonly onStdout: (line: string) => void;
  readonly onStderr: (line: string) => void;
}

/** Modules that every process loads before the script. */
const LOADED_FIRST = ["watchdog", "sdkShortcuts"] as const;

/**
 * Returns the Node.js option that loads a module before the script. The option always refers to the compiled file,
 * because each process would have to strip the types from a TypeScript file first.
 */
const loading = (name: string): string =>
  `--import=${pathToFileURL(packageFile(`dist/engine/embedded/program/${name}.js`)).href}`;

/**
 * Starts a script of the SDK in a separate process group. The script exits when this process exits, even after SIGKILL.
 * @throws ProjectError if no SDK is installed in the program's directory
 */
export function startSdkProcess(options: SdkProcessOptions): SdkProcess {
  const { programFolder, script, args, env, nodeArgs = [], loadedFirst = [], onStdout, onStderr } = options;
  const preloads = [...LOADED_FIRST, ...loadedFirst].map(loading);
  const command = [...nodeArgs, ...preloads, sdkPath(programFolder, script), ...args];
  const stdio = ["ignore", "pipe", "pipe", "pipe"] as const;
  const settings = { cwd: programFolder, env, stdio: [...stdio] };
  const child = startInGroup(process.execPath, command, settings, "SIGKILL");
  const ended = [lines(child.stdout, onStdout), lines(child.stderr, onStderr)];
  const exited = new Promise<number>((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", (code) => {
      signalGroup(child, "SIGKILL");
      // A descendant that has left the process group can keep the pipes open indefinitely. So the wait has a time
      // limit.
      const late = setTimeout(() => resolve(code ?? 128), 1000);
      void Promise.all(ended).then(() => {
        clearTimeout(late);
        resolve(code ?? 128);
      });
    });
  });
  exited.catch(() => {});
  return {
    exited,
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      signalGroup(child, "SIGTERM");
      const timer = setTimeout(() => signalGroup(child, "SIGKILL"), GRACE);
      await exited.catch(() => {});
      clearTimeout(timer);
    },
  };
}

function sdkPath(programFolder: string, script: string): string {
  const resolver = createRequire(join(programFolder, "index.js"));
  let manifest: string;
  try {
    manifest = resolver.resolve("@pulumi/pulumi/package.json");
  } catch {
    throw new ProjectError(
      `@pulumi/pulumi is not installed for the program in ${programFolder}. Run npm install.`,
    );
  }
  const found = join(dirname(manifest), script);
  if (!existsSync(found))
    throw new ProjectError(
      `${found} is missing: the installation of @pulumi/pulumi is incomplete. Run npm install.`,
    );
  return found;
}

function lines(stream: NodeJS.ReadableStream | null, onLine: (line: string) => void): Promise<void> {
  if (!stream) return Promise.resolve();
  const reader = createInterface({ input: stream });
  reader.on("line", onLine);
  return new Promise((resolve) => reader.on("close", resolve));
}

interface ProgramSettings extends ProcessSettings {
  readonly dryRun: boolean;
  readonly parallel: number;
}

/** The exit code of a program that has already reported its error to the engine as a log message. */
export const REPORTED = 32;

/**
 * Starts the Pulumi program with a script of the SDK. The CLI's language host uses the same script.
 * @param address address of the monitor server
 * @throws ProjectError if no SDK is installed, or `nodeargs` is invalid
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
 * Splits a command line into words. Supports quotes and backslashes, as a shell does.
 * @throws ProjectError if a quote is not closed
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
  if (quote !== "") throw new ProjectError(`A quote in the option nodeargs is not closed: ${text}`);
  if (word !== undefined) words.push(word);
  return words;
}
