import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { type CommandResult, environmentWithout, runCommand } from "../support/command.ts";
import { gatehouse } from "../support/gatehouse.ts";
import { callServerCommand } from "../support/serverCommand.ts";

const ROOT = new URL("../../", import.meta.url);
const AGENT = fileURLToPath(new URL("agent/bin/gatehouse-agent.js", ROOT));

/** Runs one of the project's programs with these arguments, and without any GATEHOUSE_ variables in its environment. */
type Run = (...args: readonly string[]) => Promise<CommandResult>;

const PROGRAMS: Readonly<Record<string, Run>> = {
  gatehouse: (...args) => gatehouse(args),
  "gatehouse-server": (...args) => callServerCommand(args),
  "gatehouse-agent": (...args) => runCommand([AGENT, ...args], { env: environmentWithout("GATEHOUSE_") }),
};

/** Returns the names of the subcommands that a help text lists. */
function subcommandsIn(help: string): string[] {
  const sections = help
    .split(/\n\n(?=\S.*:\n)/)
    .filter((text) => !/^(Usage|Options|Arguments|Examples?|Exit)/.test(text));
  return sections.flatMap((text) =>
    Array.from(text.matchAll(/^ {2}([a-z][a-z-]*) /gm), ([, name = ""]) => name),
  );
}

async function helpOf(run: Run, path: readonly string[] = []): Promise<[path: string, help: string][]> {
  const { code, stdout } = await run(...path, "--help");
  expect(code, path.join(" ")).toBe(0);
  const names = subcommandsIn(stdout).filter((name) => name !== "help");
  const below = await Promise.all(names.map((name) => helpOf(run, [...path, name])));
  return [[path.join(" "), stdout], ...below.flat()];
}

const helps = new Map<Run, ReturnType<typeof helpOf>>();

/** Returns the help texts of all commands of a program. Each help text is printed once for all tests. */
function helpsOf(run: Run): ReturnType<typeof helpOf> {
  const known = helps.get(run) ?? helpOf(run);
  helps.set(run, known);
  return known;
}

describe.each(Object.entries(PROGRAMS))("%s", (program, run) => {
  it("ends each help text with examples and the address of an existing page", {
    tags: ["long"],
  }, async () => {
    const texts = await helpsOf(run);
    expect(texts.length).toBeGreaterThan(2);
    for (const [path, help] of texts) {
      const [, examples = "", page = ""] =
        /\nExamples?:\n((?: {2}.+\n)+)\nDocumentation: (\/.+)\n$/.exec(help) ?? [];
      expect(examples, path).toContain(`  ${program} ${path}`.trimEnd());
      expect(existsSync(page), `${path}: ${page}`).toBe(true);
    }
  });

  it("starts each description of a command or flag with a capital letter", async () => {
    for (const [path, help] of await helpsOf(run)) {
      const descriptions = Array.from(help.matchAll(/^ {2}\S.*? {2,}(\S.*)$/gm), ([, text = ""]) => text);
      expect(
        descriptions.filter((text) => !/^[A-Z*]/.test(text) && !text.startsWith("#")),
        path,
      ).toEqual([]);
    }
  });

  it("lists the exit codes in its help", async () => {
    expect((await run("--help")).stdout).toMatch(/\nExit codes of all commands:\n {2}0 +OK/);
  });
});

it.each([
  ["gatehouse", ["plan"], "Unknown command plan. Did you mean preview?"],
  ["gatehouse", ["apply"], "Unknown command apply. Did you mean up?"],
  ["gatehouse", ["diff"], "Unknown command diff. Did you mean preview or drift?"],
  ["gatehouse", ["reviw"], "Unknown command reviw. Did you mean review?"],
  ["gatehouse", ["help", "plan"], "Unknown command plan. Did you mean preview?"],
  ["gatehouse", ["stack"], "Unknown command stack. Run gatehouse --help for a list."],
  ["gatehouse", ["pulumi", "instal"], "Unknown command instal. Did you mean install?"],
  ["gatehouse", ["preview", "--stak", "x"], "Unknown flag --stak. Did you mean --stack?"],
  ["gatehouse", ["up", "--auto-approve"], "Unknown flag --auto-approve. Did you mean --yes?"],
  [
    "gatehouse",
    ["access", "--auto-approve"],
    "Unknown flag --auto-approve. Run gatehouse access --help for a list.",
  ],
  ["gatehouse", ["preview", "-z"], "Unknown flag -z. Run gatehouse preview --help for a list."],
  ["gatehouse", ["preview", "a", "b"], "Too many arguments: a, b. See gatehouse preview --help."],
  ["gatehouse", ["import"], "The flag --out <folder> is missing. See gatehouse import --help."],
  ["gatehouse", ["import", "--out"], "--out needs a value: --out <folder>."],
  ["gatehouse", ["drift", "--notify", "mail"], '--notify cannot be "mail". Choose one of json, slack.'],
  [
    "gatehouse",
    ["test", "--stack", "a", "--terraform", "b"],
    "--terraform cannot be used with --stack. Remove one of them.",
  ],
  ["gatehouse-server", ["start"], "Unknown command start. Did you mean serve?"],
  ["gatehouse-server", ["admin", "usr"], "Unknown command usr. Did you mean user?"],
  ["gatehouse-server", ["serve", "--prot", "1"], "Unknown flag --prot. Did you mean --port?"],
  ["gatehouse-server", ["backup"], "The argument <file> is missing. See gatehouse-server backup --help."],
  ["gatehouse-agent", ["connect"], "Unknown command connect. Did you mean run?"],
  [
    "gatehouse-agent",
    ["run", "--url", "x", "--tenant", "y", "--name", "x"],
    "Unknown flag --name. Did you mean --hostname?",
  ],
])("%s %j reports its wrong command line in one line", async (program, args, message) => {
  const { code, stdout, stderr } = await (PROGRAMS[program] as Run)(...args);
  const line = program === "gatehouse" ? `error: ${message} [usage]` : `${program}: ${message}`;
  expect({ code, stdout, stderr }).toEqual({
    code: program === "gatehouse" ? 1 : 2,
    stdout: "",
    stderr: `${line}\n`,
  });
});

it("--json reports a wrong command line as JSON", async () => {
  const { code, stdout } = await gatehouse(["plan", "--json"]);
  expect(code).toBe(1);
  expect(JSON.parse(stdout)).toMatchObject({ ok: false, error: { code: "usage" } });
});

/** Flags of other programs that documents mention without a command. */
const OTHER_FLAGS = [
  "--cases",
  "--destroy",
  "--keep",
  "--output",
  "--write", // npm scripts of this project
  "--changed", // Vitest
  "--max-semi-space-size", // Node.js
  "--provenance", // npm
  "--run-program", // Pulumi
  "--secret", // Podman
];

describe("the documents", () => {
  const documents = execFileSync("git", ["ls-files", "*.md"], { cwd: ROOT, encoding: "utf8" })
    .split("\n")
    .filter((file) => file !== "" && !file.includes("recorded"))
    .map((file): [file: string, text: string] => [file, readFileSync(new URL(file, ROOT), "utf8")]);
  const flagsIn = (text: string): string[] => text.match(/(?<![\w-])--[a-z][\w-]*/g) ?? [];

  it("use only flags that exist", { timeout: 300_000 }, async () => {
    const texts = new Map<string, string>();
    for (const [program, run] of Object.entries(PROGRAMS)) {
      for (const [path, help] of await helpsOf(run)) texts.set(`${program} ${path}`.trim(), help);
    }
    const all = new Set([...texts.values()].flatMap(flagsIn).concat(OTHER_FLAGS));
    const wrong: string[] = [];
    for (const [file, text] of documents) {
      const commands = text.matchAll(
        /(?<=^|[`$&;(] ?|npx |sudo -u \w+ )(gatehouse(?:-server|-agent)?) ([^`#|&\n]*)/gm,
      );
      for (const [, program = "", line = ""] of commands) {
        const words = line.trim().split(/\s+/);
        // Skips text like `gatehouse … --engine embedded`, in which the ellipsis stands for several subcommands.
        if (words[0] === "…") continue;
        while (words.length > 0 && !texts.has([program, ...words].join(" "))) words.pop();
        const path = [program, ...words].join(" ");
        const known = flagsIn(texts.get(path) ?? "");
        for (const flag of flagsIn(line)) if (!known.includes(flag)) wrong.push(`${file}: ${path} ${flag}`);
      }
      for (const [, flag = ""] of text.matchAll(/`(--[a-z][\w-]*)[^`\n]*`/g)) {
        if (!all.has(flag)) wrong.push(`${file}: ${flag}`);
      }
    }
    expect(wrong).toEqual([]);
  });

  it("use only environment variables that exist", () => {
    const sources = execFileSync(
      "git",
      ["grep", "-hoE", '("|env\\.|\\{ )GATEHOUSE_[A-Z_]+', "--", "*.ts", "*.mjs"],
      {
        cwd: ROOT,
        encoding: "utf8",
      },
    );
    const settings = documents.find(([file]) => file === "docs/reference/server-settings.md")?.[1] ?? "";
    const known = new Set((sources + settings).match(/GATEHOUSE_[A-Z_]+/g));
    const exists = (name: string) =>
      known.has(name) ||
      known.has(name.replace(/_FILE$/, "")) ||
      // `GATEHOUSE_SAML_*` refers to all variables with the prefix.
      (name.endsWith("_") && [...known].some((variable) => variable.startsWith(name)));
    const wrong = documents.flatMap(([file, text]) =>
      (text.match(/GATEHOUSE_[A-Z_]+/g) ?? [])
        .filter((name) => !exists(name))
        .map((name) => `${file}: ${name}`),
    );
    expect(wrong).toEqual([]);
  });
});
