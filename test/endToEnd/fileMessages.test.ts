import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";
import { gatehouse, type Stack } from "../support/gatehouse.ts";
import { policyEnv, publicKey } from "../support/policy.ts";
import { sharedProgram } from "../support/policyProgram.ts";
import { sharedFleet } from "../support/sharedFleet.ts";

const fleet = sharedFleet([]);
const program = sharedProgram();
let stack: Stack;
beforeAll(async () => {
  const env = {
    ...fleet.env,
    ...policyEnv({ ana: publicKey("ana") }),
    GATEHOUSE_NOTIFY_URL: "http://127.0.0.1:1/",
  };
  stack = program.stack({ env });
  await stack.result(["up", "--yes", "--skip-preview"]);
});

// Long tests run a program before they write the file.
it.each([
  ["drift", "--junit"],
  ["drift", "--markdown"],
  ["drift", "--html"],
  ["drift", "--notify", "json", "--notify-state"],
  ["review", "--markdown"],
  ["review", "--html"],
  ["review", "--save"],
])(
  "a file in a missing folder is an error with its cause and a remedy: %s %s %s %s",
  { tags: ["long"] },
  async (...args) => {
    const file = join(program.folder, "none", "out");
    const { code, stderr } = await stack.run([...args, file]);
    const error = stderr.split("\n").find((line) => line.startsWith("error: "));
    expect([code, error]).toEqual([
      1,
      expect.stringMatching(
        `^error: Cannot write ${file}: the folder does not exist\\. Create it, or choose another path\\. \\[[a-z_]+\\]$`,
      ),
    ]);
  },
);

it("reports the cause and a remedy if a plan file does not exist", async () => {
  const file = join(program.folder, "none.plan");
  expect(await stack.run(["up", "--yes", "--plan", file])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(
      `error: Cannot read the plan ${file}: it does not exist. Correct the path. [plan_file]\n`,
    ),
  });
});

it("reports the cause and a remedy if the folder for an import is a file", async () => {
  const file = join(program.states, "file");
  writeFileSync(file, "");
  expect(await gatehouse(["import", "--out", file], fleet.env)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(
      `error: Cannot write ${file}: a file with this name already exists. Choose another path. [output]\n`,
    ),
  });
});
