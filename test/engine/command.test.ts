import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import type { Result } from "../../provider/engine/index.ts";
import { COMMAND, describeEngines } from "../support/gatehouse.ts";
import { openTerminal } from "../support/terminal.ts";
import { testWorkspace } from "./workspace.ts";

const ws = testWorkspace();

/** A PATH that contains Node.js and no Pulumi CLI. */
function withoutCli(): void {
  const bin = join(ws.root, "bin");
  mkdirSync(bin);
  symlinkSync(process.execPath, join(bin, "node"));
  ws.env.PATH = bin;
}

test("reports that a program of another runtime requires the Pulumi CLI", async () => {
  writeFileSync(join(ws.folder, "Pulumi.yaml"), "name: cloud\nruntime: yaml\n");
  const embedded = await ws.command("up", ws.folder, "--yes", "--stack", "test", "--engine", "embedded");
  expect(embedded.code).toBe(1);
  expect(embedded.output).toMatch(/Pulumi\.yaml \(yaml\): programs in languages other than Node\.js/);
  expect(embedded.output).toContain("To install the Pulumi CLI, see https://");
  withoutCli();
  const { code, output } = await ws.command("up", ws.folder, "--yes", "--stack", "test");
  expect(code).toBe(1);
  expect(output).toContain("For a program of the runtime yaml, install the Pulumi CLI");
  expect(output).not.toContain("--engine embedded");
});

test("lists both engines in the error if no CLI is installed", async () => {
  withoutCli();
  const { code, output } = await ws.command("up", ws.folder, "--yes", "--stack", "test");
  expect(code).toBe(1);
  expect(output).toContain("install the Pulumi CLI");
  expect(output).toContain("--engine embedded");
  expect(existsSync(join(ws.state, ".pulumi"))).toBe(false);
});

test("drift exits with 0 without a difference, 2 with a difference, and 1 on an error", {
  tags: ["long"],
}, async () => {
  ws.plan({ things: [{ name: "a", args: { size: 1 } }] });
  const args = [ws.folder, "--engine", "embedded"];
  const up = await ws.command("up", ...args, "--yes", "--skip-preview", "--stack", "test");
  expect(up.output).toContain("Created the stack test.");
  expect(up.output).toContain("1 created");
  expect(up.output).toContain("by the embedded engine");
  expect(up.output).not.toContain("\u001b[");
  // A command without --stack selects the only stack.
  expect((await ws.command("drift", ...args)).code).toBe(0);
  ws.tamper("a", { size: 5 });
  const drift = await ws.command("drift", ...args);
  expect(drift.code).toBe(2);
  expect(drift.output).toContain("size is 5 (declared 1)");
  ws.env.PULUMI_CONFIG_PASSPHRASE = "wrong";
  const failed = await ws.command("drift", ...args);
  expect(failed.code).toBe(1);
  expect(failed.output).toContain(
    "The passphrase is wrong: this stack was created with a different passphrase.",
  );
});

describeEngines("a missing stack", {}, (engine) => {
  const files = () => [...readdirSync(ws.folder), ...stacks()].filter((name) => /test|tset/.test(name));
  const stacks = () => {
    const folder = join(ws.state, ".pulumi/stacks/cloud");
    return existsSync(folder) ? readdirSync(folder) : [];
  };

  test("is created by a preview only with --create", async () => {
    const args = [ws.folder, "--engine", engine];
    ws.plan({ things: [{ name: "a" }] });
    const first = await ws.command("preview", ...args, "--stack", "test");
    expect(first.code).toBe(1);
    expect(first.output).toContain("The project cloud has no stack test; no stacks exist.");
    expect(first.output).toContain("gatehouse preview --create");
    expect(files()).toEqual([]);

    const created = await ws.command("preview", ...args, "--stack", "test", "--create");
    expect(created).toMatchObject({ code: 0, output: expect.stringContaining("Created the stack test.") });
    expect((await ws.command("preview", ...args, "--stack", "test", "--create")).code).toBe(0);

    const before = files();
    const misspelled = await ws.command("preview", ...args, "--stack", "tset");
    expect(misspelled.code).toBe(1);
    expect(misspelled.output).toContain("The project cloud has no stack tset; existing stacks: test.");
    expect(files()).toEqual(before);
  });
});

describeEngines("a state folder that does not exist", {}, (engine) => {
  const commands = [
    "preview",
    "preview --create --stack test",
    "up --yes --stack test",
    "up --yes --skip-preview --stack test",
    "refresh --yes",
    "destroy --yes --stack test",
    "drift --stack test",
    "review",
    "coverage",
    "expire --yes",
  ];

  test.each(commands)("is an error of gatehouse %s, which creates nothing", async (command) => {
    const [name = "", ...flags] = command.split(" ");
    const missing = join(ws.root, "no", "states");
    ws.env.PULUMI_BACKEND_URL = `file://${missing}`;
    const before = readdirSync(ws.folder);
    const { code, output } = await ws.command(name, ws.folder, "--engine", engine, ...flags);
    expect([code, output]).toEqual([
      1,
      `error: PULUMI_BACKEND_URL: The folder ${missing} does not exist. Create the folder, or correct the URL of the state backend. Nothing was changed. [backend]\n`,
    ]);
    expect([existsSync(dirname(missing)), readdirSync(ws.folder)]).toEqual([false, before]);
  });

  test("is reported with the file of the project that contains the address", async () => {
    writeFileSync(
      join(ws.folder, "Pulumi.yaml"),
      "name: cloud\nruntime: nodejs\nbackend: { url: 'file://./no/states' }\n",
    );
    delete ws.env.PULUMI_BACKEND_URL;
    const open = () => ws.open({ engine });
    await expect(open()).rejects.toMatchObject({
      code: "backend",
      field: ["backend", "url"],
      detail: `The folder ${join(ws.folder, "no/states")} does not exist (${join(ws.folder, "Pulumi.yaml")}).`,
    });
    mkdirSync(join(ws.folder, "no"));
    writeFileSync(join(ws.folder, "no/states"), "");
    await expect(open()).rejects.toMatchObject({ detail: expect.stringContaining("is a file") });
  });
});

test("the first run creates the folders inside the state folder, and the state folder itself with create_dir=true", async () => {
  await ws.up();
  expect(existsSync(join(ws.state, ".pulumi/stacks/cloud/test.json"))).toBe(true);
  const created = join(ws.root, "new");
  ws.env.PULUMI_BACKEND_URL = `file://${created}?create_dir=true`;
  await ws.up();
  expect(existsSync(join(created, ".pulumi/stacks/cloud/test.json"))).toBe(true);
});

describeEngines("the output of a failure", {}, (engine) => {
  const up = async () =>
    (await ws.command("up", ws.folder, "--yes", "--stack", "test", "--engine", engine)).output;

  test("contains the reason once, with the resource", async () => {
    ws.plan({ things: [{ name: "a", args: { fail: "create" } }] });
    const output = await up();
    expect(output.split("\n").filter((line) => /refuses|failed/.test(line))).toEqual([
      expect.stringMatching(/^ \+ {2}Thing a \([\d.]+s\) failed$/),
      " +  Thing a  failed",
      expect.stringMatching(/^1 failed \(cloud\/test, by /),
      "error: Thing a: the cloud refuses to create a",
    ]);
  });

  test("contains the invalid field", async () => {
    ws.plan({ things: [{ name: "a", args: { label: "" } }] });
    expect(await up()).toMatch(/^error: Thing a: .*label.* must not be empty$/m);
  });

  test("contains the holder and the time of the lock, and the command that removes the lock", {
    tags: ["long"],
  }, async () => {
    ws.plan({ things: [{ name: "a" }] });
    await up();
    const file = join(
      ws.state,
      ".pulumi/locks/organization/cloud/test/11111111-1111-1111-1111-111111111111.json",
    );
    mkdirSync(dirname(file), { recursive: true });
    const holder = { pid: 1, username: "ana", hostname: "elsewhere", timestamp: "2026-01-02T03:04:05Z" };
    writeFileSync(file, JSON.stringify(holder));
    ws.plan({ things: [{ name: "a", args: { size: 2 } }] });
    const output = await up();
    expect(output.slice(output.indexOf("error: "))).toBe(
      "error: The stack is locked by another process. Wait for the process to end; if it no longer exists, remove the lock " +
        `(\`pulumi cancel\`, or delete the file):\n  ${file}: ana@elsewhere (pid 1) since 2026-01-02T03:04:05Z [locked]\n`,
    );
  });
});

test.each([
  ["y", "y\r", 0, ["create a", "created a"]],
  ["an empty line", "\r", 1, []],
  ["the end of the input", "\u0004", 1, []],
  ["Ctrl-C", "\u0003", 130, []],
])("up at a terminal prompts, and the exit code after %s is $2", async (_, keys, code, calls) => {
  ws.plan({ things: [{ name: "a" }] });
  const args = [COMMAND, "up", ws.folder, "--stack", "test", "--engine", "embedded"];
  const terminal = openTerminal(process.execPath, args, { env: ws.env });
  await terminal.untilShown("Apply these changes? [y/N] ");
  terminal.press(keys);
  expect([await terminal.code, ws.calls()]).toEqual([code, calls]);
  const isApplied = calls.length > 0;
  const written = [join(ws.state, ".pulumi"), join(ws.folder, "Pulumi.test.yaml")];
  expect(written.map(existsSync)).toEqual([isApplied, isApplied]);
  const locks = join(ws.state, ".pulumi", "locks");
  const files = existsSync(locks) ? readdirSync(locks, { recursive: true, encoding: "utf8" }) : [];
  expect(files.filter((file) => file.endsWith(".json"))).toEqual([]);
});

test.each(["up", "refresh", "destroy"])(
  "%s that the user declines writes no missing settings file",
  { tags: ["long"] },
  async (name) => {
    ws.plan({ things: [{ name: "a" }] });
    await ws.up();
    const file = join(ws.folder, "Pulumi.test.yaml");
    rmSync(file);
    ws.plan({ things: [{ name: "a" }, { name: "b" }] });
    const args = [COMMAND, name, ws.folder, "--stack", "test", "--engine", "embedded"];
    const answered = async (answer: string) => {
      const terminal = openTerminal(process.execPath, args, { env: ws.env });
      await terminal.untilShown("? [y/N] ");
      terminal.type(answer);
      return [await terminal.code, existsSync(file)];
    };
    expect(await answered("n")).toEqual([1, false]);
    expect(await answered("y")).toEqual([0, true]);
  },
);

test("a stack that another process creates during the prompt is previewed again", {
  tags: ["long"],
}, async () => {
  ws.plan({ things: [{ name: "a" }] });
  const plans: string[][] = [];
  const result = await ws.up({
    skipPreview: false,
    confirm: async ({ steps }) => {
      plans.push(steps.map(({ op, name }) => `${op} ${name}`).filter((step) => /(a|b)$/.test(step)));
      if (plans.length > 1) return true;
      ws.plan({ things: [{ name: "a" }] });
      await ws.up();
      ws.plan({ things: [{ name: "a" }, { name: "b" }] });
      return true;
    },
  });
  expect([result.createdStack, plans]).toEqual([false, [["create a"], ["same a", "create b"]]]);
});

test("--json prints the result, also if the run failed", async () => {
  ws.plan({ things: [{ name: "a", args: { fail: "create" } }] });
  const args = ["--yes", "--skip-preview", "--stack", "test", "--engine", "embedded", "--json"];
  const { code, output } = await ws.command("up", ws.folder, ...args);
  expect(code).toBe(1);
  const result = JSON.parse(output.slice(output.indexOf("{"), output.lastIndexOf("}") + 1)) as Result;
  expect(result).toMatchObject({
    ok: false,
    error: { code: "failed", message: "1 resource failed." },
    engine: "embedded",
    command: "up",
    stack: "test",
    project: "cloud",
  });
  expect(result.steps.find((step) => step.name === "a")).toMatchObject({
    error: "the cloud refuses to create a",
  });
});

test("passes the configuration to the program", async () => {
  ws.plan({ config: "size", things: [] });
  writeFileSync(join(ws.folder, "Pulumi.test.yaml"), "# mine\nconfig:\n  cloud:size: 5\n");
  const result = await ws.up();
  expect(result.outputs).toEqual({ config: "5" });
});

test("reports the path of a state file that is nested too deeply", { tags: ["long"] }, async () => {
  await ws.up();
  const levels = "[".repeat(5_000_000) + "]".repeat(5_000_000);
  const file = join(ws.state, ".pulumi/stacks/cloud/test.json");
  const text = readFileSync(file, "utf8").replace(
    /"resources":\s*\[/,
    (begin) => `"metadata":${levels},${begin}`,
  );
  writeFileSync(file, text);
  const args = ["preview", ws.folder, "--stack", "test", "--engine", "embedded"];
  const { code, output } = await ws.command(...args);
  expect([code, output]).toEqual([
    1,
    expect.stringMatching(/^error: .*test\.json .*nested deeper than 500 levels\. \[backend\]\n$/),
  ]);
});

test("reports unusable settings with an error code", async () => {
  const stack = () => ws.open();
  await expect(ws.open({ folder: ws.root })).rejects.toMatchObject({ code: "project" });
  ws.env.PULUMI_BACKEND_URL = "s3://bucket";
  await expect(stack()).rejects.toMatchObject({ code: "unsupported" });
  ws.env.PULUMI_BACKEND_URL = "";
  ws.env.PULUMI_HOME = join(ws.root, "home");
  delete ws.env.PULUMI_ACCESS_TOKEN;
  await expect(stack()).rejects.toMatchObject({ code: "backend" });
  ws.env.PULUMI_BACKEND_URL = `file://${ws.state}`;
  delete ws.env.PULUMI_CONFIG_PASSPHRASE;
  await expect(stack().then((opened) => opened.preview())).rejects.toMatchObject({ code: "passphrase" });
  ws.env.PULUMI_CONFIG_PASSPHRASE = "x";
  await expect(stack().then((opened) => opened.destroy())).rejects.toMatchObject({ code: "stack_selection" });
});
