import type { Command } from "commander";
import type { ActionOf, Io } from "./io.ts";

const INSTALL_HELP = `
Programs of every language can then use Gatehouse under the Pulumi CLI. "pulumi package add gatehouse" in a program's
folder makes the SDK of its language. PULUMI_HOME names the CLI's folder; by default that is .pulumi in the home folder
that the user database has: as the CLI, the command does not look at HOME.
"pulumi plugin rm resource gatehouse" removes the plugin.

Exit codes: 0 installed; 1 the folder cannot be written.`;

/** Adds pulumi, which connects Gatehouse with the Pulumi CLI. */
export function addPulumiCommand(program: Command, action: ActionOf): void {
  program
    .command("pulumi")
    .description("connect Gatehouse with the Pulumi CLI")
    .command("install")
    .description("place the plugin where the Pulumi CLI finds it")
    .addHelpText("after", INSTALL_HELP)
    .action(action(install));
}

async function install({ env, stdout, stderr }: Io): Promise<number> {
  const { installPlugin } = await import("../providers/plugin/installPlugin.ts");
  try {
    const { version, file } = await installPlugin(env);
    stdout.write(`The plugin gatehouse ${version} is installed: ${file}\n`);
    stdout.write(`Next, in the folder of a program: pulumi package add gatehouse\n`);
    return 0;
  } catch (error) {
    const { code, path } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    stderr.write(
      `error: can not write ${path ?? "the plugin"} (${code}); PULUMI_HOME names another folder\n`,
    );
    return 1;
  }
}
