import { readdirSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import type { Review } from "../../provider/review/report/review.ts";
import { gatehouse, PASSPHRASE, spawnGatehouse } from "../support/gatehouse.ts";
import { publicKey } from "../support/policy.ts";
import { sharedProgram } from "../support/policyProgram.ts";
import { sharedFleet } from "../support/sharedFleet.ts";

const STACK = "prod";
const POLICY = { ana: publicKey("ana") };

const fleet = sharedFleet();
const program = sharedProgram();

beforeAll(async () => {
  await fleet.enroll("web-01");
  const settings = ["url", "username", "password"].map((name) => [
    `gatehouse:${name}`,
    `${fleet.env[`GATEHOUSE_${name.toUpperCase()}`]}`,
  ]);
  await program.configure(STACK, Object.fromEntries(settings), PASSPHRASE);
  program.write(
    "access.policy.ts",
    'import { expect, policyTest } from "@gatehouse-access/provider/policy";\n' +
      'policyTest("one device", ({ policy }) => expect(policy.devices.length).toSatisfy((n) => n === 1));\n',
  );
});

const settings = (env: Record<string, string>) => ({
  ...program.backend,
  POLICY: JSON.stringify(POLICY),
  ...env,
});
/** Runs a command in this process. Only for commands that end before their policy tests run. */
const run = (args: readonly string[], env: Record<string, string> = {}) => gatehouse(args, settings(env));
const runTesting = (args: readonly string[]) => spawnGatehouse(args, settings({}));
const named = (stack: string) => ["--stack", stack, "--engine", "embedded"];
const commands = () => ({
  test: ["test", program.folder, "--json", ...named(STACK)],
  access: ["access", "--folder", program.folder, "--json", ...named(STACK)],
  review: ["review", program.folder, "--json", ...named(STACK)],
  preview: ["preview", program.folder, "--json", ...named(STACK)],
});

// The long test runs policy tests in processes.
describe("credentials that only the stack's configuration contains", { timeout: 120_000 }, () => {
  it("are used by the commands test and access, which create no stack", { tags: ["long"] }, async () => {
    const { test, access } = commands();
    const tested = await runTesting(test);
    expect(tested).toMatchObject({ code: 0, stderr: "" });
    expect(JSON.parse(tested.stdout)).toMatchObject({ ok: true, tenant: fleet.tenant });
    const answered = await run(access);
    expect(answered).toMatchObject({ code: 0, stderr: "" });
    expect(JSON.parse(answered.stdout)).toMatchObject({ namespace: fleet.tenant });
    expect(readdirSync(program.states)).toEqual([]);
    expect(readdirSync(program.folder).filter((name) => name.startsWith("Pulumi."))).toEqual([
      `Pulumi.${STACK}.yaml`,
      "Pulumi.yaml",
    ]);
  });

  it("are used by review, and by the policy tests of a preview", { tags: ["long"] }, async () => {
    const { review, preview } = commands();
    const reviewed = await runTesting([...review, "--create"]);
    expect(reviewed.code).toBe(0);
    const { service, namespaces } = JSON.parse(reviewed.stdout) as Review;
    expect(service).toBe(fleet.env.GATEHOUSE_URL);
    expect(namespaces.map(({ access }) => access?.map(({ where }) => where))).toEqual([["web-01"]]);
    const previewed = await runTesting(preview);
    expect(previewed.code).toBe(0);
    expect(JSON.parse(previewed.stdout)).toMatchObject({
      summary: { create: 2 },
      policyTests: { ok: true, tenant: fleet.tenant },
    });
  });

  /**
   * Returns the error code in the output of a command with `--json`. Commands without `--json` print no error code:
   * checks that their stdout is empty, and returns `without`.
   */
  function errorOf(args: readonly string[], stdout: string, without: string): string {
    if (args.includes("--json")) return (JSON.parse(stdout) as { error: { code: string } }).error.code;
    expect(stdout).toBe("");
    return without;
  }

  it("are overridden by credentials of the environment", async () => {
    const { preview: _, ...others } = commands();
    for (const args of Object.values(others)) {
      const { code, stdout, stderr } = await run(args, { GATEHOUSE_TOKEN: "of-the-environment" });
      expect(code).toBe(1);
      expect(errorOf(args, stdout, "authentication")).toBe("authentication");
      expect(stdout).not.toContain("of-the-environment");
      expect(stderr).toMatch(/error: .*(credential|token|authenti)/i);
      expect(stderr).not.toContain("of-the-environment");
    }
  });

  it("require the passphrase, and are not printed", async () => {
    const { preview: _, ...others } = commands();
    for (const args of Object.values(others)) {
      const { code, stdout, stderr } = await run(args, { PULUMI_CONFIG_PASSPHRASE: "another" });
      expect(code).toBe(1);
      expect(errorOf(args, stdout, "passphrase")).toBe("passphrase");
      expect(stderr).toBe(
        "error: The passphrase is wrong: this stack was created with a different passphrase. Set PULUMI_CONFIG_PASSPHRASE, or PULUMI_CONFIG_PASSPHRASE_FILE, to that passphrase. [passphrase]\n",
      );
    }
  });

  it("are not used without --stack", async () => {
    const { code, stderr } = await run(["test", program.folder]);
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringContaining("GATEHOUSE_URL is not set. Set it to the address of the service"),
    });
    const usage = await run(["access", "--engine", "embedded"]);
    expect(usage).toMatchObject({
      code: 1,
      stderr: "error: --engine needs --stack. Add --stack <name>. [usage]\n",
    });
  });

  it("are not used for a missing stack, which no command creates", async () => {
    for (const command of ["test", "review"]) {
      const { code, stderr } = await run([command, program.folder, ...named("prdo")]);
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: expect.stringContaining("The project commonjs-program has no stack prdo"),
      });
      expect(readdirSync(program.folder)).not.toContain("Pulumi.prdo.yaml");
    }
  });
});
