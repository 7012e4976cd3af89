import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { type CommandResult, environmentWithout } from "./command.ts";
import { openTerminal, type Terminal } from "./terminal.ts";

/** A command that runs in the background. */
export interface Started<T> {
  /** The value from the output. */
  readonly value: T;
  stop(): Promise<void>;
}

/** Quotes a text for a shell. */
export const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/**
 * A shell in which a test types the commands of a page, like a reader. It keeps the folder and the exported variables
 * between the lines, and its home directory is a folder of the test.
 */
export class Shell {
  /** The home directory, in which the shell starts. */
  readonly folder: string;
  readonly #substitutes: [RegExp, string][] = [];
  /** The exit code of the last line. */
  #code = 0;
  /** The typed lines, each with its output, exit code and duration. */
  transcript = "";

  /** @param paths folders that the shell searches for commands before the PATH of this process */
  constructor(folder: string, paths: readonly string[] = [], env: Readonly<Record<string, string>> = {}) {
    this.folder = folder;
    mkdirSync(this.#path(".shell", "bin"), { recursive: true });
    const variables = {
      ...environmentWithout("GATEHOUSE_", "PULUMI_", "TF_", "npm_"),
      HOME: folder,
      PATH: [join(folder, ".shell", "bin"), ...paths, dirname(process.execPath), process.env.PATH].join(
        delimiter,
      ),
      TF_CLI_ARGS: "-no-color",
      GIT_AUTHOR_NAME: "Ana",
      GIT_AUTHOR_EMAIL: "ana@example.org",
      GIT_COMMITTER_NAME: "Ana",
      GIT_COMMITTER_EMAIL: "ana@example.org",
      ...env,
    };
    const exports = Object.entries(variables).map(([name, value]) => `export ${name}=${quoted(value)}\n`);
    writeFileSync(this.#path(".shell", "env"), exports.join(""));
    writeFileSync(this.#path(".shell", "cwd"), folder);
  }

  /** Replaces a text in all later lines, before they are typed. */
  substitute(text: RegExp, by: string): void {
    this.#substitutes.push([text, by]);
  }

  /** Returns a text with the replacements of `substitute`. */
  substituted(text: string): string {
    return this.#substitutes.reduce((result, [pattern, by]) => result.replace(pattern, by), text);
  }

  /** Types a line and waits until its command ends, with any exit code. */
  async type(line: string): Promise<CommandResult> {
    const started = Date.now();
    const save = `export -p > ${quoted(this.#path(".shell", "env"))}; pwd > ${quoted(this.#path(".shell", "cwd"))}`;
    const script = `(exit ${this.#code}); eval ${quoted(line)}; code=$?; ${save}; exit $code`;
    const result = await this.#run(script);
    this.#code = result.code ?? 0;
    const seconds = ((Date.now() - started) / 1000).toFixed(1);
    this.record(`$ ${line}\n${result.stdout}${result.stderr}[exit code ${result.code}, ${seconds} s]\n`);
    return result;
  }

  /** Types a line whose command prompts, in a terminal. */
  open(line: string): Terminal {
    this.record(`$ ${line}\n`);
    return openTerminal("/bin/sh", ["-c", this.#inShell(`exec ${line}`)], { env: {} });
  }

  /**
   * Types a line whose command does not end. Waits until `ready` returns a value for a line of its output.
   * @throws Error with the output if the command ends first
   */
  async start<T>(line: string, ready: (output: string) => T | undefined): Promise<Started<T>> {
    const child = spawn("/bin/sh", ["-c", this.#inShell(`exec ${line}`)], {
      env: {},
      stdio: ["ignore", "pipe", "pipe"],
    });
    const closed = once(child, "close");
    let output = "";
    const value = await new Promise<T>((resolve, reject) => {
      for (const stream of [child.stdout, child.stderr]) {
        createInterface({ input: stream }).on("line", (text) => {
          output += `${text}\n`;
          const found = ready(text);
          if (found !== undefined) resolve(found);
        });
      }
      child.once("close", (code) => reject(new Error(`${line} ended with ${code}:\n${output}`)));
    });
    this.record(`$ ${line}\n${output}[runs in the background]\n`);
    return {
      value,
      async stop() {
        child.kill("SIGTERM");
        await closed;
      },
    };
  }

  /** Puts a shell script of this name first on the PATH. */
  command(name: string, script: string): void {
    writeFileSync(this.#path(".shell", "bin", name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  }

  /** Adds a paragraph to the transcript. */
  record(text: string): void {
    this.transcript += `${text}\n`;
  }

  #path(...names: string[]): string {
    return join(this.folder, ...names);
  }

  /** Returns a script that sets the folder and the variables of this shell first. */
  #inShell(script: string): string {
    return `. ${quoted(this.#path(".shell", "env"))}; cd "$(cat ${quoted(this.#path(".shell", "cwd"))})"; ${script}`;
  }

  #run(script: string): Promise<CommandResult> {
    const flags = ["-c", this.#inShell(script)];
    return new Promise((resolve, reject) => {
      const options = { cwd: this.folder, env: {}, maxBuffer: 64 * 1024 * 1024 };
      const child = execFile("/bin/sh", flags, options, (_, stdout, stderr) => {
        if (child.exitCode === null)
          reject(new Error(`the shell was ended by a signal:\n${stdout}${stderr}`));
        else resolve({ code: child.exitCode, stdout, stderr });
      });
      child.stdin?.end();
    });
  }
}
