import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/** Maximum time, in milliseconds, for a process to start. */
const READY_WITHIN = 120_000;
/** Maximum number of output lines of a process in an error message. */
const LAST_LINES = 20;

/** A process that the demo runs in the background. */
export interface Child<Ready> {
  readonly process: ChildProcess;
  /** The value that the option `ready` parsed from an output line, such as an address. */
  readonly ready: Ready;
  /** A promise that rejects with a {@link ChildError} if the process exits before `stop`. It never resolves. */
  readonly died: Promise<never>;
  /** Stops the process and waits for its exit. */
  stop(): Promise<void>;
}

/**
 * The error of a process of the demo that exited, or that was not ready in time. The message contains the last output
 * lines of the process and the remedy.
 */
export class ChildError extends Error {
  constructor(name: string, problem: string, lines: readonly string[]) {
    const output =
      lines.length === 0
        ? "The process printed nothing."
        : `Last lines of the output:\n  ${lines.join("\n  ")}`;
    super(
      `${name} ${problem}. ${output}\nFix the problem that the output reports, then run the demo again. ` +
        "If the output does not help, report a bug with the output and the versions of the operating system and Node.js.",
    );
    this.name = "ChildError";
  }
}

interface StartOptions<Ready> {
  /** Name of the process in error messages, such as `The service`. */
  readonly name: string;
  readonly env?: NodeJS.ProcessEnv;
  /** True if the process may continue to run after the demo. */
  readonly detached?: boolean;
  /** Parses a line of output. Returns undefined for lines before the process is ready. */
  ready(line: string): Ready | undefined;
}

/**
 * Starts a Node.js program and waits until it is ready.
 * @throws ChildError if the program exits before it is ready, or is not ready in time
 */
export async function startChild<Ready>(
  args: readonly string[],
  { name, env, detached = false, ready }: StartOptions<Ready>,
): Promise<Child<Ready>> {
  const child = spawn(process.execPath, args, { env, detached, stdio: ["ignore", "pipe", "pipe"] });
  const lines: string[] = [];
  let stopped = false;
  const died = new Promise<never>((_, reject) => {
    const fail = (problem: string) => reject(new ChildError(name, problem, lines));
    child.once("error", (error) => fail(`could not be started: ${error.message}`));
    // Node.js emits "close" after the last line of the output. It may emit "exit" earlier.
    child.once("close", (code, signal) => {
      if (!stopped) fail(`exited with ${signal === null ? `exit code ${code}` : `signal ${signal}`}`);
    });
  });
  died.catch(() => {});
  const isReady = new Promise<Ready>((resolve) => {
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on("line", (line) => {
        lines.push(line);
        if (lines.length > LAST_LINES) lines.shift();
        const value = ready(line);
        if (value !== undefined) resolve(value);
      });
    }
  });
  const stop = async () => {
    stopped = true;
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGTERM");
    await once(child, "exit");
  };
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const problem = `is not ready after ${READY_WITHIN / 1000} s`;
    timer = setTimeout(() => reject(new ChildError(name, problem, lines)), READY_WITHIN);
  });
  try {
    return { process: child, ready: await Promise.race([isReady, died, late]), died, stop };
  } catch (error) {
    await stop();
    throw error;
  } finally {
    clearTimeout(timer);
  }
}
