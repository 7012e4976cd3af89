import { type ChildProcessByStdio, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { findOnPath } from "../../../provider/engine/processes.ts";
import type { Target } from "./targets.ts";

/** An operation that one SSH client performs. */
export interface Check {
  readonly client: string;
  readonly operation: string;
  /** The reason why this machine cannot run the check; undefined if it can. */
  readonly without?: string | undefined;
  /** The reason why a plain sshd does not support the operation; undefined if it does. */
  readonly notOnSshd?: string;
  /** Time limit, in milliseconds. @default one minute */
  readonly timeLimit?: number;
  /** Runs the operation. Throws an error with the symptom if the result is wrong. */
  run(workspace: Workspace): Promise<void>;
}

/** The result of one check at one target. */
export type Outcome =
  | { readonly kind: "failed" | "skipped"; readonly reason: string }
  | { readonly kind: "passed"; readonly seconds: number };

/** Default time limit of a check, in milliseconds. */
const TIME_LIMIT = 60_000;
/** Maximum number of stderr characters that a failure shows. */
const SHOWN = 300;

/**
 * Returns a function that creates checks of a client.
 * @param without the reason why this machine cannot run the client; undefined if it can
 */
export const checksOf =
  (client: string, without: string | undefined) =>
  (operation: string, run: Check["run"], more: Partial<Check> = {}): Check => ({
    client,
    operation,
    without,
    run,
    ...more,
  });

/** Returns the reason if one of the programs is not on the PATH. Returns undefined if all programs are. */
export function withoutPrograms(...names: readonly string[]): string | undefined {
  const missing = names.find((name) => findOnPath(name, process.env) === undefined);
  return missing === undefined ? undefined : `\`${missing}\` is not on the PATH`;
}

/** The Python interpreter that runs the helper scripts. */
export const PYTHON = process.env.PYTHON || "python3";

/** Returns the reason if Python cannot import the module. Returns undefined if it can. */
export function withoutModule(name: string): string | undefined {
  const { status } = spawnSync(PYTHON, ["-c", `import ${name}`], { stdio: "ignore" });
  return status === 0 ? undefined : `${PYTHON} has no module \`${name}\`; set PYTHON to one that has it`;
}

/** Throws an error if two values differ. */
export function expectEqual(what: string, actual: unknown, expected: unknown): void {
  const [actualText, expectedText] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (actualText !== expectedText)
    throw new Error(`${what}: ${cut(actualText)} instead of ${cut(expectedText)}`);
}

/** Throws an error if a text does not contain the given part. */
export function expectContains(what: string, text: string, part: string): void {
  if (!text.includes(part))
    throw new Error(`${what}: no ${JSON.stringify(part)} in ${cut(JSON.stringify(text))}`);
}

/** Throws an error that shows the first difference if two buffers differ. */
export function expectSameBytes(what: string, actual: Buffer, expected: Buffer): void {
  if (actual.equals(expected)) return;
  const length = Math.min(actual.length, expected.length);
  let first = 0;
  while (first < length && actual[first] === expected[first]) first += 1;
  throw new Error(
    `${what}: ${actual.length} of ${expected.length} bytes; the first difference is at ${first}`,
  );
}

export const expectSameFile = (actual: string | Buffer, expected: string | Buffer): void =>
  expectSameBytes(String(actual).replace(/^.*\//, ""), readFileSync(actual), readFileSync(expected));

const cut = (text: string | undefined): string =>
  text !== undefined && text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : String(text);

/** Options of a program that a check runs. */
export interface RunOptions {
  /** Input on stdin. Default: none. `"open"` keeps stdin open until the program ends. */
  readonly input?: string | Buffer | "open";
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Expected exit code. @default 0 */
  readonly code?: number;
}

/** The output of a program. */
export interface Output {
  readonly stdout: Buffer;
  readonly stderr: string;
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

/** The folders and processes that one check uses at one target. */
export class Workspace {
  readonly target: Target;
  /** Folder for the files of the client. */
  readonly here: string;
  /** Folder on the target. The target's user may write to it. */
  readonly there: string;
  /** Path of a file of 30 MB. The target's user may read the file. */
  readonly big: string;
  readonly #home: string;
  readonly #running = new Map<Child, string>();

  constructor(target: Target, { folder, big }: { readonly folder: string; readonly big: string }) {
    this.target = target;
    this.big = big;
    const root = mkdtempSync(join(folder, "check-"));
    chmodSync(root, 0o755);
    this.here = join(root, "here");
    this.there = join(root, "there");
    this.#home = join(root, "home");
    for (const path of [this.here, this.there, this.#home]) mkdirSync(path);
    chmodSync(this.there, 0o777);
  }

  /** Starts a program in its own process group. All processes of the group are killed when the check ends. */
  start(program: string, args: readonly string[], { env, cwd }: RunOptions = {}): Child {
    const { PATH = "" } = process.env;
    const child = spawn(program, args, {
      cwd: cwd ?? this.here,
      env: { PATH, HOME: this.#home, LANG: "C.UTF-8", ...env },
      detached: true,
      stdio: ["pipe", "pipe", "pipe"],
    });
    this.#running.set(child, [program, ...args].join(" "));
    child.once("close", () => this.#running.delete(child));
    child.on("error", () => {});
    child.stdin.on("error", () => {});
    return child;
  }

  /** Runs a program until it exits. Throws an error if the exit code differs from the expected exit code. */
  async run(program: string, args: readonly string[], options: RunOptions = {}): Promise<Output> {
    const { input = "", code: expected = 0 } = options;
    const child = this.start(program, args, options);
    if (input !== "open") child.stdin.end(input);
    child.once("exit", () => child.stdin.destroy());
    const [stdout, stderr, [code, signal]] = await Promise.all([
      buffer(child.stdout),
      buffer(child.stderr),
      once(child, "close") as Promise<[number | null, NodeJS.Signals | null]>,
    ]);
    const messages = stderr.toString("utf8");
    if (code !== expected) {
      const end = (messages.trim() || stdout.toString("latin1").trim()).slice(-SHOWN);
      throw new Error(`exit code ${code ?? signal} instead of ${expected}${end && `: ${end}`}`);
    }
    return { stdout, stderr: messages };
  }

  /** Runs OpenSSH's client until it exits. */
  ssh(command: string, options: RunOptions & { readonly flags?: readonly string[] } = {}): Promise<Output> {
    return this.run("ssh", ["-F", this.target.config, ...(options.flags ?? []), "target", command], options);
  }

  /** Starts OpenSSH's client. */
  startSsh(flags: readonly string[], command?: string): Child {
    const more = command === undefined ? [] : [command];
    return this.start("ssh", ["-F", this.target.config, ...flags, "target", ...more]);
  }

  /** The command lines of the running programs, for the message about the time limit. */
  get running(): string {
    return [...this.#running.values()].map((line) => cut(line)).join("; ");
  }

  /** Kills all processes of the check and removes all its files. */
  async close(): Promise<void> {
    for (const child of this.#running.keys()) {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
      } catch {
        // The process group has already ended.
      }
      child.stdout.destroy();
      child.stderr.destroy();
    }
    rmSync(join(this.here, ".."), { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Runs a check at a target. The check fails after its time limit. */
export async function runCheck(
  check: Check,
  target: Target,
  files: { readonly folder: string; readonly big: string },
): Promise<Outcome> {
  const reason = check.without ?? (target.isSshd ? check.notOnSshd : undefined);
  if (reason !== undefined) return { kind: "skipped", reason };
  const workspace = new Workspace(target, files);
  const begun = performance.now();
  let timer: NodeJS.Timeout | undefined;
  const { timeLimit = TIME_LIMIT } = check;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`no end after ${timeLimit / 1000} s: ${workspace.running}`)),
      timeLimit,
    );
  });
  const work = check.run(workspace);
  try {
    await Promise.race([work, late]);
    return { kind: "passed", seconds: (performance.now() - begun) / 1000 };
  } catch (error) {
    return { kind: "failed", reason: error instanceof Error ? error.message : String(error) };
  } finally {
    clearTimeout(timer);
    // After the time limit, `close` kills the programs, so `work` rejects too. The check has already failed.
    work.catch(() => {});
    await workspace.close();
  }
}

/** Waits until a program's output contains a text. Returns the output so far. */
export async function untilWritten(stream: Readable, expectedText: string): Promise<string> {
  let seen = "";
  for await (const chunk of stream.iterator({ destroyOnReturn: false })) {
    seen += String(chunk);
    if (seen.includes(expectedText)) return seen;
  }
  throw new Error(`the output ended without ${JSON.stringify(expectedText)}: ${cut(JSON.stringify(seen))}`);
}
