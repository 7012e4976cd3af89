import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { packageFile } from "../../../packageFile.ts";

const running = new Set<ChildProcess>();
let cleaning = false;

/** A child process of the engine. */
export type Child = {
  pid: number;
  /** Resolves with the exit code (or 128 for a signal) once the process is gone and its output is read. */
  exited: Promise<number>;
  /** Ends the process and all it started: SIGTERM, then SIGKILL after `graceMs`. Resolves when it is gone. */
  stop(graceMs?: number): Promise<void>;
};

/** How to start a child, and who reads its output line by line. */
export type ChildOptions = {
  cwd: string;
  env: NodeJS.ProcessEnv;
  nodeArgs?: string[];
  onStdout: (line: string) => void;
  onStderr: (line: string) => void;
};

// What was built, even where this module was not: each process would have to strip the types again.
const LOADED_FIRST = ["watchdog", "lazyModules"].map(
  (name) => `--import=${pathToFileURL(packageFile(`dist/engine/embedded/program/${name}.js`)).href}`,
);

/**
 * Starts a Node.js script in a process group of its own, so that Ctrl-C reaches only us and we decide what happens
 * to it. It ends when this process ends, in whatever way.
 */
export function startNode(script: string, args: string[], options: ChildOptions): Child {
  const child = spawn(process.execPath, [...(options.nodeArgs ?? []), ...LOADED_FIRST, script, ...args], {
    cwd: options.cwd,
    env: options.env,
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
  const ended = [lines(child.stdout, options.onStdout), lines(child.stderr, options.onStderr)];
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
    pid: child.pid ?? 0,
    exited,
    async stop(graceMs = 2000) {
      if (child.exitCode !== null || child.signalCode !== null) return;
      signal(child, "SIGTERM");
      const timer = setTimeout(() => signal(child, "SIGKILL"), graceMs);
      await exited.catch(() => {});
      clearTimeout(timer);
    },
  };
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
    // EPERM: some systems say so of a group of which only dead processes are left.
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ESRCH" && code !== "EPERM") throw error;
  }
}
