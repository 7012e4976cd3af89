import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { testFolder } from "../support/folder.ts";
import { gatehouse } from "../support/gatehouse.ts";

const run = (shell: string, args: readonly string[], cwd?: string) =>
  spawnSync(shell, args, { encoding: "utf8", ...(cwd !== undefined && { cwd }) });

const isInstalled = (shell: string) => run(shell, ["--version"]).status === 0;

/** Creates a project directory with two stacks and the completion script of a shell. Returns its path. */
async function project(shell: string): Promise<string> {
  const folder = testFolder();
  mkdirSync(join(folder, "policy"));
  for (const name of [
    "plan.json",
    "Pulumi.yaml",
    "Pulumi.prod.yaml",
    "Pulumi.test.yaml",
    "Pulumi.$(touch pwned).yaml",
  ])
    writeFileSync(join(folder, name), "");
  const { code, stdout } = await gatehouse(["completion", shell]);
  expect(code).toBe(0);
  writeFileSync(join(folder, "script"), stdout);
  return folder;
}

/** Returns the completions of the last word, as the shell computes them. */
const COMPLETIONS: Readonly<Record<string, (words: readonly string[], cwd: string) => string>> = {
  bash: (words, cwd) => {
    const line = words.map((word) => `'${word}'`).join(" ");
    const script = `source ./script; COMP_WORDS=(${line}); COMP_CWORD=${words.length - 1}; _gatehouse; printf '%s\n' "\${COMPREPLY[@]}"`;
    return run("bash", ["--norc", "-c", script], cwd).stdout;
  },
  // Zsh cannot complete a line without a terminal. So the test calls the completion function in the same way as zsh's
  // adapter for bash functions.
  zsh: (words, cwd) => {
    const line = words.map((word) => `'${word}'`).join(" ");
    const script = `autoload -U compinit && compinit -D -u; source ./script; words=(${line}); setopt ksharrays; COMP_WORDS=(${line}); COMP_CWORD=${words.length - 1}; _gatehouse; printf '%s\n' "\${COMPREPLY[@]}"`;
    // Keeps only the completions that begin with the last word, as zsh does after the call of the function.
    return run("zsh", ["-f", "-c", script], cwd)
      .stdout.split("\n")
      .filter((word) => word.startsWith(words.at(-1) ?? ""))
      .join("\n");
  },
  fish: (words, cwd) =>
    run(
      "fish",
      ["--no-config", "-c", `source ./script; complete -C '${words.join(" ")}'`],
      cwd,
    ).stdout.replaceAll(/\t.*/g, ""),
};

describe.each(Object.entries(COMPLETIONS))("the completion of %s", (shell, complete) => {
  it.skipIf(!isInstalled(shell))(
    `completes commands, flags, values and files (skipped if ${shell} is not installed)`,
    async () => {
      const folder = await project(shell);
      const completed = (...words: string[]) =>
        complete(["gatehouse", ...words], folder)
          .split("\n")
          .filter((line) => line !== "")
          .sort();
      expect(completed("re")).toEqual(["refresh", "review"]);
      expect(completed("pulumi", "")).toContain("install");
      expect(completed("review", "--ma")).toEqual(["--markdown"]);
      expect(completed("preview", "--engine", "")).toEqual(["cli", "embedded"]);
      expect(completed("preview", "--stack", "")).toEqual(["prod", "test"]);
      expect(completed("completion", "").filter((word) => !word.startsWith("-"))).toEqual([
        "bash",
        "fish",
        "zsh",
      ]);
      expect(completed("drift", "--junit", "pl")).toEqual(["plan.json"]);
      expect(completed("preview", "po").map((name) => name.replace(/\/$/, ""))).toEqual(["policy"]);
      expect(completed("access", "--login", "")).toEqual([]);
    },
  );
});

it("completes --flag=value in bash, which splits the word at the equals sign", async () => {
  const folder = await project("bash");
  const complete = COMPLETIONS.bash as (words: readonly string[], cwd: string) => string;
  expect(complete(["gatehouse", "up", "--engine", "=", "e"], folder)).toBe("embedded\n");
  expect(complete(["gatehouse", "up", "--engine", "="], folder)).toBe("cli\nembedded\n");
});

it("rejects an unsupported shell", async () => {
  expect(await gatehouse(["completion", "tcsh"])).toMatchObject({
    code: 1,
    stderr: 'error: <shell> cannot be "tcsh". Choose one of bash, zsh, fish. [usage]\n',
  });
});
