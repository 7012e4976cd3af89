import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { newCrypter } from "../../provider/engine/state/crypter.ts";
import { testWorkspace } from "./workspace.ts";

const ws = testWorkspace();

describe("the configuration of a stack with the embedded engine", () => {
  const configure = (text: string) => writeFileSync(join(ws.folder, "Pulumi.test.yaml"), text);

  test("is returned as plaintext with decrypted secrets, and no stack is created", async () => {
    const crypter = await newCrypter("correct horse");
    const secure = (text: string) => `{ secure: "${crypter.encrypt(text)}" }`;
    configure(
      `encryptionsalt: ${crypter.saltText}\nconfig:\n  gatehouse:token: ${secure("swordfish")}\n` +
        `  gatehouse:config:url: http://a.example\n  size: 3\n  nested: { pin: ${secure("1234")} }\n`,
    );
    expect([...(await (await ws.open()).config())]).toEqual([
      ["gatehouse:token", "swordfish"],
      ["gatehouse:url", "http://a.example"],
      ["cloud:size", "3"],
      ["cloud:nested", '{"pin":"1234"}'],
    ]);
    expect(readdirSync(ws.state)).toEqual([]);
    const other = await ws.open({ env: { ...ws.env, PULUMI_CONFIG_PASSPHRASE: "another" } });
    await expect(other.config()).rejects.toMatchObject({ code: "passphrase" });
  });

  test("is written without other changes to the file, even before the stack exists", async () => {
    const crypter = await newCrypter("correct horse");
    const long = crypter.encrypt("x".repeat(300));
    const before =
      `# settings\nencryptionsalt: ${crypter.saltText}\n` +
      `config:\n  # kept\n  gatehouse:url: http://a.example # here\n  gatehouse:token:\n    secure: ${long}\n`;
    configure(before);
    await (await ws.open()).setConfig("gatehouse:tenant", "t1");
    const text = readFileSync(join(ws.folder, "Pulumi.test.yaml"), "utf8");
    expect(text).toBe(`${before}  gatehouse:tenant: t1\n`);
    expect(await (await ws.open()).resources()).toEqual([]);
    expect((await (await ws.open()).config()).get("gatehouse:token")).toBe("x".repeat(300));
    await (await ws.open()).setConfig("gatehouse:tenant", "t2");
    expect((await (await ws.open()).config()).get("gatehouse:tenant")).toBe("t2");
  });

  test.each(["", "config:\n", "config: {}\n"])(
    "is written to settings without configuration: %j",
    async (before) => {
      if (before !== "") configure(before);
      await (await ws.open()).setConfig("gatehouse:tenant", "t1");
      expect([...(await (await ws.open()).config())]).toEqual([["gatehouse:tenant", "t1"]]);
    },
  );

  test("requires no passphrase without encrypted values", async () => {
    configure("config:\n  gatehouse:url: http://a.example\n");
    const { PULUMI_CONFIG_PASSPHRASE: _, ...env } = ws.env;
    expect([...(await (await ws.open({ env })).config())]).toEqual([["gatehouse:url", "http://a.example"]]);
    configure('config:\n  gatehouse:url: { secure: "v1:a:b" }\n');
    await expect((await ws.open({ env })).config()).rejects.toMatchObject({ code: "passphrase" });
  });

  test("is rejected for a missing stack", async () => {
    await expect((await ws.open()).config()).rejects.toMatchObject({ code: "stack_selection" });
    expect(readdirSync(ws.folder)).not.toContain("Pulumi.test.yaml");
  });
});

/**
 * Opens the stack with a fake `pulumi` program on the PATH. `commands` contains the JavaScript code that the fake
 * program runs for each CLI command.
 */
const openWithFake = async (commands: Readonly<Record<string, string>>) => {
  const bin = join(ws.root, "bin");
  mkdirSync(bin);
  const cases = Object.entries({ version: 'print("v3.270.0")', select: "", config: "", ...commands });
  writeFileSync(
    join(bin, "pulumi"),
    `#!/usr/bin/env node\nconst print = (text) => process.stdout.write(text);\n` +
      "const fail = (text, out = '') => { process.stdout.write(out); process.stderr.write(text); process.exitCode = 255; };\n" +
      `const work = { ${cases.map(([name, code]) => `${name}() { ${code} }`).join(", ")} };\n` +
      "const words = process.argv.slice(2);\nconst name = Object.keys(work).find((word) => words.includes(word));\n" +
      'if (name) work[name](); else fail("error: unexpected: " + words.join(" "));\n',
    { mode: 0o755 },
  );
  return ws.open({ engine: "cli", env: { ...ws.env, PATH: `${bin}:${process.env.PATH}` } });
};

describe("the configuration of a stack with a replacement for the Pulumi CLI", () => {
  test("is returned as plaintext with decrypted secrets", { tags: ["long"] }, async () => {
    const config = { "gatehouse:token": { value: "swordfish", secret: true }, "cloud:size": { value: "3" } };
    const stack = await openWithFake({ config: `print(${JSON.stringify(JSON.stringify(config))})` });
    expect([...(await stack.config())]).toEqual([
      ["gatehouse:token", "swordfish"],
      ["cloud:size", "3"],
    ]);
  });

  test("is rejected with the CLI's error, without its other output", async () => {
    const wrong = await openWithFake({
      config: 'fail("error: getting secrets manager: incorrect passphrase")',
    });
    await expect(wrong.config()).rejects.toMatchObject({ code: "passphrase" });
    rmSync(join(ws.root, "bin"), { recursive: true });
    const broken = await openWithFake({
      config: 'fail("warning: old\\nerror: it is broken\\n", "swordfish")',
    });
    await expect(broken.config()).rejects.toThrow(
      /^The Pulumi CLI could not read the stack's configuration\. error: it is broken\.$/,
    );
  });

  test("is rejected for a missing stack, and no stack is created", async () => {
    const stack = await openWithFake({ select: `fail("error: no stack named 'test' found")` });
    await expect(stack.config()).rejects.toMatchObject({ code: "stack_selection" });
  });
});

// The CLI previews only existing stacks.
test.each([undefined, "config:\n  cloud:size: 3\n"])(
  "the Pulumi CLI's stack that an up created for its preview is removed if the user declines (settings before: %j)",
  async (before) => {
    const settings = join(ws.folder, "Pulumi.test.yaml");
    if (before !== undefined) writeFileSync(settings, before);
    const calls = join(ws.root, "calls");
    const write = (file: string, text: string) =>
      `require("fs").writeFileSync(${file}, ${JSON.stringify(text)});`;
    const called = `require("fs").appendFileSync(${JSON.stringify(calls)}, words.slice(0, 3).join(" ") + "\\n");`;
    const stack = await openWithFake({
      select: `fail("error: no stack named 'test' found")`,
      init: called + write(JSON.stringify(settings), "encryptionsalt: v1:new\n"),
      preview: called + write('words[words.indexOf("--save-plan") + 1]', "{}"),
      output: 'print("{}")',
      rm: `${called} require("fs").rmSync(${JSON.stringify(settings)});`,
    });
    await expect(stack.up({ confirm: async () => false })).rejects.toMatchObject({ code: "declined" });
    const words = readFileSync(calls, "utf8").trim().split("\n");
    expect(words).toEqual(["stack init test", expect.stringMatching(/^preview/), "stack rm --yes"]);
    expect(existsSync(settings) ? readFileSync(settings, "utf8") : undefined).toBe(before);
  },
);
