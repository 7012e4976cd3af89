import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it, vi } from "vitest";
import { environmentWithout } from "../support/command.ts";
import { testFolder } from "../support/folder.ts";
import { COMMAND, gatehouse } from "../support/gatehouse.ts";
import { sharedProgram } from "../support/policyProgram.ts";
import { openTerminal } from "../support/terminal.ts";

// Each test runs a program.
vi.setConfig({ testTimeout: 120_000 });

// No service listens on this address: all errors occur before the first request.
const env = {
  GATEHOUSE_URL: "http://127.0.0.1:9",
  GATEHOUSE_USERNAME: "ana",
  GATEHOUSE_PASSWORD: "horse",
  GATEHOUSE_TENANT: "00000000-0000-4000-8000-000000000000",
};
const program = sharedProgram();
const args = (folder: string, ...more: string[]) => [
  "preview",
  folder,
  "--stack=prod",
  "--create",
  "--offline",
  "--no-tests",
  "--engine=embedded",
  ...more,
];

/** Runs a preview of a program with this source text. Returns what it printed after the name of the phase. */
async function previewed(source: string, ...more: string[]) {
  program.write("index.js", source);
  const { code, stdout, stderr } = await gatehouse(args(program.folder, ...more), {
    ...program.backend,
    ...env,
  });
  expect(code).toBe(1);
  expect(stdout.replace("Created the stack prod.\n", "")).toBe("Previewing\n");
  return stderr;
}

const USES = 'const { FirewallRule, sshKeyFile } = require("@gatehouse-access/provider");\n';
const RULE = 'action: "deny", sourceIp: ".*", username: ".*", filter: { hostname: "^a$" }';

it.each([
  [
    "a missing key file",
    `${USES}sshKeyFile("keys/none.pub");\n`,
    "index.js:2:1: Cannot read keys/none.pub: it does not exist. Correct the path. [program]",
  ],
  [
    "an exception after a declaration",
    `${USES}new FirewallRule("r", { priority: 1, ${RULE} });\nundefined.length;\n`,
    "index.js:3:11: TypeError: Cannot read properties of undefined (reading 'length') [program]",
  ],
  [
    "a rejected promise",
    'setTimeout(async () => {\n  throw new Error("no directory");\n}, 1);\n',
    "index.js:2:9: no directory [program]",
  ],
  ["a syntax error", "const a = {;\n", "index.js:1:12: SyntaxError: Unexpected token ';' [program]"],
  [
    "a missing package",
    'require("not-installed");\n',
    "index.js:1:1: Cannot find module 'not-installed'. Correct the name, or install the package with npm install. [program]",
  ],
  [
    "a missing setting",
    `${USES}new (require("@pulumi/pulumi").Config)().require("region");\n`,
    "index.js:2:42: Missing required configuration variable 'commonjs-program:region'\n" +
      "  please set a value using the command `pulumi config set commonjs-program:region <value>` [program]",
  ],
])("prints %s as one block with its place", { tags: ["long"] }, async (_, source, error) => {
  expect(await previewed(source)).toBe(`error: ${error}\n`);
});

it("prints each error of a compiled program with its place", { tags: ["long"] }, async () => {
  const folder = testFolder();
  symlinkSync(join(program.folder, "node_modules"), join(folder, "node_modules"));
  writeFileSync(join(folder, "Pulumi.yaml"), "name: typed\nruntime: nodejs\n");
  writeFileSync(join(folder, "package.json"), '{ "main": "index.ts" }');
  writeFileSync(join(folder, "index.ts"), 'export const a: number = "x";\nexport const b: string = 1;\n');
  const { stderr } = await gatehouse(args(folder), { ...program.backend, ...env });
  expect(stderr).toBe(
    "error: index.ts:1:14: Type 'string' is not assignable to type 'number' (TS2322). [program]\n" +
      "error: index.ts:2:14: Type 'number' is not assignable to type 'string' (TS2322). [program]\n",
  );
});

it("prints each invalid input once, with its resource", { tags: ["long"] }, async () => {
  const source = `${USES}new FirewallRule("r", { priority: -1, ${RULE.replace("deny", "x")} });\n`;
  expect((await previewed(source)).trimEnd().split("\n").sort()).toEqual([
    "error: FirewallRule r: action must be one of allow, deny. [invalid_input]",
    "error: FirewallRule r: priority must be at least 0. [invalid_input]",
  ]);
});

it("prints the call stack with --verbose", { tags: ["long"] }, async () => {
  const stderr = await previewed('throw new Error("late");\n', "--verbose");
  expect(stderr).toMatch(
    /^error: index\.js:1:7: late \[program\]\nError: late\n {4}at Object\.<anonymous> \(/,
  );
});

it("prints no control characters as text at a terminal", async () => {
  program.write("index.js", 'throw new TypeError("late");\n');
  const terminal = openTerminal(process.execPath, [COMMAND, ...args(program.folder)], {
    env: { ...environmentWithout("GATEHOUSE_", "PULUMI_"), ...program.backend, ...env },
  });
  expect(await terminal.code).toBe(1);
  expect(terminal.shown()).toContain("error: index.js:1:7: TypeError: late [program]");
  expect(terminal.shown()).not.toMatch(/\\u\{|node_modules/);
});

it("runs a component library that depends on this package if the program does not", {
  tags: ["long"],
}, async () => {
  const root = testFolder();
  const write = (name: string, text: string) => {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), text);
  };
  const link = (name: string, target: string) => {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    symlinkSync(target, join(root, name));
  };
  const installed = (name: string) => join(program.folder, "node_modules", name);
  write("components/package.json", '{ "name": "components", "main": "index.js" }');
  write(
    "components/index.js",
    `const { FirewallRule } = require("@gatehouse-access/provider");\nexports.rule = (name) => new FirewallRule(name, { priority: 1, ${RULE} });\n`,
  );
  link("components/node_modules", join(program.folder, "node_modules"));
  write("app/Pulumi.yaml", "name: app\nruntime: { name: nodejs, options: { typescript: false } }\n");
  write("app/package.json", '{ "name": "app", "main": "index.js" }');
  write("app/index.js", 'require("components").rule("r");\n');
  link("app/node_modules/@pulumi/pulumi", installed("@pulumi/pulumi"));
  link("app/node_modules/components", join(root, "components"));
  const run = await gatehouse(args(join(root, "app")), { ...program.backend, ...env });
  expect(run).toMatchObject({ code: 0, stderr: "", stdout: expect.stringContaining("1 to create") });
});
