import { fileFailure } from "@gatehouse-access/sdk/errors";
import { type Command, Option } from "commander";
import { EngineError } from "../engine/index.ts";
import { CHOICES, type Choice, SOURCE } from "../terraform/source.ts";
import type { ActionOf, Io, Outcome } from "./outcome.ts";

const PLUGIN_HELP = `
Programs of every language can then use Gatehouse under the Pulumi CLI. "pulumi package add gatehouse" in a program's
folder makes the SDK of its language. PULUMI_HOME names the CLI's folder; by default that is .pulumi in the home folder
that the user database has: as the CLI, the command does not look at HOME.
"pulumi plugin rm resource gatehouse" removes the plugin.

Exit codes: 0 installed; 1 the folder cannot be written.`;

const PROVIDER_HELP = `
Configurations can then use the provider: "terraform init" or "tofu init" finds it. Both programs search .terraform.d/plugins
in the home folder by default, each in a folder of its own. With --mirror, the command prints the settings that they need.
The provider is a script: it needs Node.js 22.19 or newer as "node" on the PATH, and does not run on Windows.

Exit codes: 0 installed; 1 the folder cannot be written.`;

interface Flags {
  readonly mirror?: string;
  readonly for?: Choice;
}

export function addInstallCommands(program: Command, action: ActionOf): void {
  program
    .command("pulumi")
    .description("connect Gatehouse with the Pulumi CLI")
    .command("install")
    .description("place the plugin where the Pulumi CLI finds it")
    .addHelpText("after", PLUGIN_HELP)
    .action(action(installPlugin));
  program
    .command("terraform")
    .description("connect Gatehouse with Terraform or OpenTofu")
    .command("install")
    .description("install the provider for Terraform or OpenTofu")
    .addOption(
      new Option(
        "--for <program>",
        "which program uses it; default: those on the PATH, or both where neither is",
      ).choices(CHOICES),
    )
    .option("--mirror <folder>", "install into this mirror; default: .terraform.d/plugins in the home folder")
    .addHelpText("after", PROVIDER_HELP)
    .action(action(installProvider));
}

async function installPlugin({ env }: Io): Promise<Outcome> {
  const { installPlugin } = await import("../providers/plugin/installPlugin.ts");
  try {
    const { version, file } = await installPlugin(env);
    const text = `The plugin gatehouse ${version} is installed: ${file}
Next, in the folder of a program: pulumi package add gatehouse`;
    return { text: () => text };
  } catch (error) {
    throw installError(error, "the plugin", "Set PULUMI_HOME to another folder.");
  }
}

async function installProvider({ env }: Io, { mirror, for: choice }: Flags): Promise<Outcome> {
  const { installProvider, mirrorText, clisFor } = await import("../terraform/installProvider.ts");
  const programs = clisFor(env, choice);
  try {
    const { version, files, folder } = await installProvider(env, programs, mirror);
    const installed = files.map(
      ({ program, file }) => `The provider gatehouse ${version} is installed for ${program.name}: ${file}\n`,
    );
    const places = programs.map(({ name, settings }) => `${settings} of ${name}`).join(" and ");
    const mirrored = mirror === undefined ? "" : `\nAdd to ${places}:\n\n${mirrorText(folder)}`;
    const inits = programs.map((program) => `${program.command} init`).join(" or ");
    const next = `\nIn a configuration:\n\n${requirementText(version)}\nThen: ${inits}`;
    return { text: () => `${installed.join("")}${mirrored}${next}` };
  } catch (error) {
    throw installError(error, "the provider", "Choose another folder with --mirror.");
  }
}

/** The error of an installation; other errors than those of the file system are returned unchanged. */
function installError(error: unknown, what: string, remedy: string): unknown {
  const { code, path } = error as NodeJS.ErrnoException;
  if (code === undefined || error instanceof EngineError) return error;
  const { detail } = fileFailure("write", path ?? what, error);
  return new EngineError("install", detail, { remedy, cause: error });
}

const requirementText = (version: string) => `terraform {
  required_providers {
    gatehouse = {
      source  = "${SOURCE}"
      version = "${version}"
    }
  }
}
`;
