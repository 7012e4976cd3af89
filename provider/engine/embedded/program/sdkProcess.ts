import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { packageFile } from "../../../packageFile.ts";
import { ProjectError } from "../../errors.ts";
import type { Project } from "../../project/project.ts";
import type { StackConfig } from "../../project/stackConfig.ts";

/** How long a process has to end by itself, in milliseconds. */
const GRACE = 2000;

const running = new Set<ChildProcess>();
let cleaning = false;

/** A process that runs a script of Pulumi's SDK. */
export interface SdkProcess {
  /** Resolves with the exit code, 128 for a signal, once the process is gone and its output was read. */
  readonly exited: Promise<number>;
  /** Ends the process and all that it started: by SIGTERM, then by SIGKILL. Resolves when it is gone. */
  stop(): Promise<void>;
}

/** What the program and its provider are run with. */
export interface ProcessSettings {
  readonly project: Project;
  readonly stack: string;
  readonly config: StackConfig;
  readonly env: NodeJS.ProcessEnv;
}

/** How a script of the SDK is started. */
export interface SdkProcessOptions {
  /** Folder of the program, whose SDK is meant. */
  readonly programFolder: string;
  /** The script, as a path in the SDK's folder. */
  readonly script: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  /** Flags of Node.js. */
  readonly nodeArgs?: readonly string[];
  /** Told each line of the output. */
  readonly onStdout: (line: string) => void;
  readonly onStderr: (line: string) => void;
}

// As they were built, even where this module was not: each process would have to strip the types again.
const LOADED_FIRST = ["watchdog", "lazyModules"].map(
  (name) => `--import=${pathToFileURL(packageFile(`dist/engine/embedded/program/${name}.js`)).href}`,
);

/**
 * Starts a script of the SDK in a process group of its own, so that Ctrl-C reaches this process alone. The script ends
 * when this process does, even by SIGKILL.
 * @throws ProjectError where the program's folder has no SDK installed
 */
export function startSdkProcess(options: SdkProcessOptions): SdkProcess {
  const { programFolder, script, args, env, nodeArgs = [], onStdout, onStderr } = options;
  const command = [...nodeArgs, ...LOADED_FIRST, sdkPath(programFolder, script), ...args];
  const child = spawn(process.execPath, command, {
    cwd: programFolder,
    env,
    stdio: ["ignore", "pipe", "pipe", "pipe"],
    detached: true,
  });
  running.add(child);
  if (!cleaning) {
    cleaning = true;
    process.on("exit", () => {
      for (const left of running) signal(left, "SIGKILL");
    });
  }
  const ended = [lines(child.stdout, onStdout), lines(child.stderr, onStderr)];
  const exited = new Promise<number>((resolve, reject) => {
    child.on("error", (error) => {
      running.delete(child);
      reject(error);
    });
    child.on("exit", (code) => {
      running.delete(child);
      signal(child, "SIGKILL");
      // A process that left the group may hold the pipes open for as long as it likes.
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
      signal(child, "SIGTERM");
      const timer = setTimeout(() => signal(child, "SIGKILL"), GRACE);
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
      `@pulumi/pulumi is not installed for the program in ${programFolder}: run npm install.`,
    );
  }
  const found = join(dirname(manifest), script);
  if (!existsSync(found)) throw new ProjectError(`${found} is missing: @pulumi/pulumi is not complete.`);
  return found;
}

function lines(stream: NodeJS.ReadableStream | null, onLine: (line: string) => void): Promise<void> {
  if (!stream) return Promise.resolve();
  const reader = createInterface({ input: stream });
  reader.on("line", onLine);
  return new Promise((resolve) => reader.on("close", resolve));
}

function signal(child: ChildProcess, name: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, name);
  } catch (error) {
    // Some systems answer EPERM for a group of which only dead processes are left.
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ESRCH" && code !== "EPERM") throw error;
  }
}
