import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { copyProgram } from "../../examples/demo/logins.ts";
import type { PolicyTestReport } from "../../provider/policyTests/results.ts";
import { gatehouse, isNoSettings, Stack, spawnGatehouse } from "../support/gatehouse.ts";
import { sharedFleet } from "../support/sharedFleet.ts";

const PROGRAM = fileURLToPath(new URL("../../examples/fleet-access", import.meta.url));

/** The lines of the example's policy tests. A report names a line by its number, counted from 1. */
const POLICY = readFileSync(join(PROGRAM, "access.policy.ts"), "utf8").split("\n");

const lineOf = (text: string) => POLICY.findIndex((line) => line.includes(text)) + 1;

const fleet = sharedFleet();
let folder: string;
const uids = new Map<string, string>();

/** Runs `gatehouse test` with only the settings of `env`. */
const gatehouseTest = (env: Record<string, string>, ...args: string[]) =>
  spawnGatehouse(["test", ...args], env, folder);

const tag = (device: string, tags: string[]) =>
  fleet.client.updateDeviceTags({ params: { uid: uids.get(device) ?? "" }, body: { tags } });

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "gatehouse-policy-tests-"));
  for (const user of ["bob", "carla", "dora"]) {
    await fleet.service.createUser({
      username: user,
      password: "correct-horse",
      email: `${user}@example.org`,
    });
  }
  for (const [role, count] of [
    ["web", 12],
    ["db", 5],
    ["edge", 8],
  ] as const) {
    for (let number = 1; number <= count; number += 1) {
      const name = `${role}-${String(number).padStart(2, "0")}`;
      uids.set(name, await fleet.enroll(name));
    }
  }
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

// Slow, since the example is a TypeScript program that the SDK compiles. Other tests in this file use faster programs.
test("the example's tests pass after up, and fail after a manual change of a device's tag", {
  timeout: 180_000,
  tags: ["long"],
}, async () => {
  const program = copyProgram(folder);
  const file = join(program, "index.ts");
  // The owner of the namespace has a different address in the test.
  writeFileSync(file, readFileSync(file, "utf8").replace("ana@example.org", "admin@example.com"));
  const stack = new Stack({ program, folder, engine: "embedded", env: fleet.env });
  try {
    await stack.result(["up", "--yes", "--skip-preview"]);
  } finally {
    stack.dispose();
  }
  const rule = await fleet.client.createFirewallRule({
    body: {
      action: "allow",
      active: true,
      priority: 7,
      sourceIp: ".*",
      username: "^support$",
      filter: { hostname: ".*" },
    },
  });
  const before = await gatehouseTest(fleet.env, program);
  expect(before, before.stdout).toMatchObject({ code: 0, stderr: "" });
  expect(before.stdout).toContain("  ok  contractors stay out of production");
  expect(before.stdout).toContain("5 passed");

  await tag("edge-03", ["edge", "prod"]);
  const after = await gatehouseTest(fleet.env, program);
  expect(after).toMatchObject({ code: 2, stderr: "" });
  expect(after.stdout).toContain("1 failed, 4 passed");
  const testLine = lineOf("contractors stay out of production");
  const failedLine = lineOf('toAllow({ key: "Contractor*"');
  const lines = after.stdout.split("\n");
  const at = lines.findIndex((line) => line.startsWith("FAIL"));
  expect(lines.slice(at, at + 5)).toEqual([
    expect.stringMatching(
      new RegExp(`^FAIL {2}contractors stay out of production {2}\\S*access\\.policy\\.ts:${testLine}$`),
    ),
    '       expect(access).not.toAllow({ key: "Contractor*", device: { tag: "prod" } })',
    expect.stringMatching(new RegExp(`^ {7}1 case is allowed: {2}\\S*access\\.policy\\.ts:${failedLine}$`)),
    expect.stringMatching(
      /^ {9}support on edge-03 from <any other address> with the key "Contractor, edge only, until June" \(([0-9a-f]{2}:){15}[0-9a-f]{2}\), by rule \S+ \(allow, priority 7\), until 2030-06-30 22:00 UTC$/,
    ),
    expect.stringContaining("evaluated 1 key and 18 devices"),
  ]);
  expect(lines[at + 3]).toContain(`rule ${rule.id} `);

  const json = await gatehouseTest(fleet.env, program, "--json");
  expect(json).toMatchObject({ code: 2, stderr: "" });
  const report = JSON.parse(json.stdout) as PolicyTestReport & { tenant: string };
  expect(report).toMatchObject({ ok: false, tenant: fleet.tenant });
  expect(report.tests.find(({ ok }) => !ok)).toMatchObject({
    name: "contractors stay out of production",
    file: "access.policy.ts",
    line: testLine,
    failures: [
      {
        line: failedLine,
        cases: 1,
        counterexamples: [
          { login: "support", device: { name: "edge-03", uid: uids.get("edge-03") }, rule: { id: rule.id } },
        ],
      },
    ],
  });

  await tag("edge-03", ["edge"]);
  expect((await gatehouseTest(fleet.env, program)).code).toBe(0);
});

test("gatehouse test detects a changed member", { tags: ["long"], timeout: 120_000 }, async () => {
  const program = join(folder, "members");
  cpSync(PROGRAM, program, {
    recursive: true,
    filter: (source) => isNoSettings(source) && !source.endsWith("access.policy.ts"),
  });
  writeFileSync(
    join(program, "members.policy.ts"),
    'import { expect, policyTest } from "@gatehouse-access/provider/policy";\n' +
      'policyTest("no administrators", ({ members }) => {\n' +
      '  expect(members).toAllSatisfy(({ role }) => role !== "administrator");\n});\n',
  );
  expect((await gatehouseTest(fleet.env, "members")).code).toBe(0);
  const { members } = await fleet.client.getNamespace({ params: { tenant: fleet.tenant } });
  const carla = members.find(({ email }) => email.startsWith("carla"));
  const role = { role: "administrator" } as const;
  // Carla is already a member if the test of the example ran before this test.
  if (carla) {
    const params = { tenant: fleet.tenant, uid: carla.id };
    await fleet.client.updateMember({ params, body: role });
  } else {
    const body = { email: "carla@example.org", ...role };
    await fleet.client.inviteMember({ params: { tenant: fleet.tenant }, body });
  }
  const { code, stdout } = await gatehouseTest(fleet.env, "members");
  expect(code).toBe(2);
  expect(stdout).toMatch(
    /the predicate is false for 1 of \d: carla@example\.org {2}members\/members\.policy\.ts:3/,
  );
});

function compile(compiler: string, ...flags: readonly string[]): void {
  const command = fileURLToPath(new URL(`../../node_modules/${compiler}/bin/tsc`, import.meta.url));
  const args = [command, "-p", PROGRAM, "--noEmit", "--skipLibCheck", ...flags];
  expect(execFileSync(process.execPath, args, { encoding: "utf8" })).toBe("");
}

test("the example's tests compile with the types of the package's exports", () => {
  compile("typescript-7", "--module", "preserve", "--moduleResolution", "bundler");
});

// This test uses the TypeScript compiler of a program, with its default module resolution. It is ten times as slow as
// the compiler of the previous test.
test("the example's tests compile with the types that a program's compiler resolves", {
  tags: ["long"],
}, () => {
  compile("typescript");
});

test("gatehouse test prints one line and exits with 1 if the tests cannot run", {
  timeout: 120_000,
}, async () => {
  const empty = mkdtempSync(join(folder, "empty-"));
  const cases: [Record<string, string>, string, string][] = [
    [fleet.env, empty, "has no policy tests"],
    [fleet.env, join(folder, "nowhere"), "it does not exist"],
    [{}, PROGRAM, "GATEHOUSE_URL is not set. Set it to the address of the service"],
    [
      { GATEHOUSE_URL: fleet.service.url },
      PROGRAM,
      "credential is not set. Set GATEHOUSE_OIDC (in a pipeline), or GATEHOUSE_USERNAME",
    ],
    [{ ...fleet.env, GATEHOUSE_PASSWORD: "wrong-password" }, PROGRAM, "login"],
    [{ ...fleet.env, GATEHOUSE_TENANT: "nonsense" }, PROGRAM, "GATEHOUSE_TENANT must be"],
    [
      { ...fleet.env, GATEHOUSE_URL: "http://127.0.0.1:9", GATEHOUSE_RETRY_TIMEOUT: "0" },
      PROGRAM,
      "ECONNREFUSED",
    ],
  ];
  for (const [env, program, message] of cases) {
    const { code, stdout, stderr } = await gatehouse(["test", program], env);
    expect({ code, stdout }, message).toEqual({ code: 1, stdout: "" });
    expect(stderr).toContain(message);
    expect(stderr.trimEnd().split("\n"), stderr).toHaveLength(1);
    expect(stderr).not.toContain("wrong-password");
  }
});
