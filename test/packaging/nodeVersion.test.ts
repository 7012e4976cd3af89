import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { environmentWithout, runCommand } from "../support/command.ts";
import { testFolder } from "../support/folder.ts";
import { hasTerraform, installedProvider, LABEL, RootModule } from "../terraform/support/terraform.ts";

const { nodeProblem } = createRequire(import.meta.url)("../../sdk/startProgram.cjs") as {
  readonly nodeProblem: (program: string, needed: string, version: string) => string | undefined;
};

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** Returns a flag of Node.js with which a program sees an old version. */
function oldNode(version: string): string {
  const file = join(testFolder(), "old.cjs");
  const replace = `Object.defineProperty(process.versions, "node", { value: ${JSON.stringify(version)} });\n`;
  writeFileSync(file, replace);
  return `--require=${file}`;
}

const text = (program: string, version: string) =>
  `${program} needs Node.js 22.19 or newer, but this is Node.js ${version}. Install a newer version from https://nodejs.org.\n`;

test.each([
  ["provider/bin/gatehouse.js", "gatehouse"],
  ["provider/bin/pulumi-resource-gatehouse.js", "pulumi-resource-gatehouse"],
  ["server/bin/gatehouse-server.js", "gatehouse-server"],
  ["agent/bin/gatehouse-agent.js", "gatehouse-agent"],
])("%s ends with an error on an old version of Node.js", async (path, program) => {
  expect(await runCommand([oldNode("20.20.2"), join(ROOT, path), "--version"])).toEqual({
    code: 1,
    stdout: "",
    stderr: text(program, "20.20.2"),
  });
});

test("the Terraform provider prints the error to the standard output, because Terraform hides the standard error", async () => {
  const provider = join(ROOT, "provider/dist/terraform/terraform-provider-gatehouse");
  expect(await runCommand([oldNode("22.18.0"), provider], { env: environmentWithout("TF_") })).toEqual({
    code: 1,
    stdout: text("terraform-provider-gatehouse", "22.18.0"),
    stderr: "",
  });
});

describe.runIf(hasTerraform)(LABEL, () => {
  test("shows the error of the provider", { tags: ["long"] }, async () => {
    const root = new RootModule(testFolder(), {
      ...installedProvider(),
      NODE_OPTIONS: oldNode("20.20.2"),
    });
    root.write({ provider: { gatehouse: {} }, data: { gatehouse_tags: { all: {} } } });
    expect((await root.rejected("plan")).replaceAll(/[\s│]+/g, " ")).toContain(
      text("terraform-provider-gatehouse", "20.20.2").trim(),
    );
  });
});

test.each([
  ["22.19.0", true],
  ["22.20.1", true],
  ["24.0.0", true],
  ["22.18.9", false],
  ["21.99.0", false],
  ["8.17.0", false],
])("version %s is new enough: %s", (version, isEnough) => {
  expect(nodeProblem("program", ">=22.19", version) === undefined).toBe(isEnough);
});
