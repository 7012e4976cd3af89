import type { Command } from "commander";
import { EngineError } from "../engine/index.ts";
import type { Connection } from "../service/connection.ts";
import { addConfigurationFlags, type ConfigurationFlags, configurationOf } from "./configurationFlags.ts";
import { allowUnseenOption } from "./flags.ts";
import type { ActionOf, Io } from "./io.ts";
import { hasPolicyTests, isTestsFailed, TESTS_FAILED, testedText } from "./policyTestRun.ts";
import { colours } from "./render.ts";
import { addTerraformFlag, readTerraform, type TerraformFlags } from "./terraformPlan.ts";
import { withConnection } from "./withConnection.ts";

interface Flags extends ConfigurationFlags, TerraformFlags {
  readonly allowUnseen: boolean;
  readonly json?: boolean;
}

/** Adds test, which runs the policy tests beside a program on the namespace as it is. */
export function addTestCommand(program: Command, action: ActionOf): void {
  const command = addConfigurationFlags(program.command("test"));
  addTerraformFlag(command, "on the namespace as this plan of Terraform or OpenTofu will leave it", [
    "stack",
    "engine",
  ])
    .description(
      "run the policy tests (*.policy.ts) on the namespace as it is; exits with 2 where one fails, or where something could not be looked at",
    )
    .argument("[folder]", "folder with Pulumi.yaml", ".")
    .addOption(allowUnseenOption())
    .option("--json", "print the result as JSON")
    .action(action(test));
}

async function test(io: Io, folder: string, flags: Flags): Promise<number> {
  if (!(await hasPolicyTests(folder))) {
    throw new EngineError(
      "policy_tests",
      `${folder} has no policy tests: files named *.policy.ts, also in policy/.`,
    );
  }
  const terraform =
    flags.terraform === undefined ? undefined : await readTerraform(io, folder, flags.terraform);
  const configuration = terraform?.settings ?? (await configurationOf(io, folder, flags));
  // With the client, which the other commands need not wait for.
  const { testLive, testPlan } = await import("../review/testedNamespace.ts");
  const test = (connection: Connection) =>
    terraform ? testPlan(connection, folder, terraform.plan, terraform.unseen) : testLive(connection, folder);
  const tested = await withConnection(io, test, configuration);
  const text = flags.json
    ? JSON.stringify(tested, null, 2)
    : await testedText(colours(io.stdout, io.env), tested, folder);
  io.stdout.write(`${text}\n`);
  return isTestsFailed(tested, flags) ? TESTS_FAILED : 0;
}
