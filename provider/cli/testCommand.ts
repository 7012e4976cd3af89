import { relative, resolve } from "node:path";
import type { Command } from "commander";
import { EngineError } from "../engine/index.ts";
import { addConfigurationFlags, type ConfigurationFlags, configurationOf } from "./configurationFlags.ts";
import { policyTestsText } from "./policyTestsText.ts";
import { colours } from "./render.ts";
import { withConnection } from "./withConnection.ts";

/** The exit code of `gatehouse test` where a test fails. */
export const TESTS_FAILED = 2;

type Flags = ConfigurationFlags & { json?: boolean };

/** Adds test, which runs the policy tests beside a program on the namespace as it is. */
export function addTestCommand(program: Command): void {
  addConfigurationFlags(program.command("test"))
    .description("run the policy tests (*.policy.ts) on the namespace as it is; exits with 2 where one fails")
    .argument("[folder]", "folder with Pulumi.yaml", ".")
    .option("--json", "print the result as JSON")
    .action(async (folder: string, flags: Flags) => {
      const code = await test(folder, flags);
      // What a test started and did not end would keep the process.
      process.stdout.write("", () => process.exit(code));
    });
}

async function test(folder: string, flags: Flags): Promise<number> {
  // With the client, which the other commands need not wait for.
  const { liveFacts, policyTestFiles, runPolicyTests } = await import("../review/policyTests.ts");
  const files = await policyTestFiles(folder).catch((cause: Error) => {
    throw new EngineError("project", cause.message, { cause });
  });
  if (files.length === 0) {
    throw new EngineError(
      "policy_tests",
      `${folder} has no policy tests: files named *.policy.ts, also in policy/.`,
    );
  }
  const { readEstate } = await import("../review/estate.ts");
  const configuration = await configurationOf(folder, flags);
  const estate = await withConnection(
    async (connection) => readEstate(await connection.tenant(undefined)),
    configuration,
  );
  const report = await runPolicyTests(folder, liveFacts(estate));
  const { tenant, unknown } = estate;
  const text = flags.json
    ? JSON.stringify({ ...report, tenant, unknown }, null, 2)
    : policyTestsText(colours(process.stdout, process.env), report, relative("", resolve(folder)));
  process.stdout.write(`${text}\n`);
  return report.ok ? 0 : TESTS_FAILED;
}
