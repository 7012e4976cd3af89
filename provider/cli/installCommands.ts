import { type Command, Option } from "@commander-js/extra-typings";
import { fileFailure } from "@gatehouse-access/sdk/errors";
import { EngineError } from "../engine/index.ts";
import { CHOICES, SOURCE } from "../terraform/source.ts";
import type { ActionOf, CommandOutput, Io } from "./commandOutput.ts";
import type { FlagsOf } from "./flags.ts";
import { addHelp } from "./help.ts";

const PLUGIN_NOTES = `
The command installs the plugin into PULUMI_HOME. The default is .pulumi in the home
directory that the user database contains. Like the Pulumi CLI, the command ignores
the variable HOME.
To remove the plugin: pulumi plugin rm resource gatehouse`;

const PROVIDER_NOTES = `
Terraform and OpenTofu search .terraform.d/plugins in the home folder by default.
With --mirror, the command prints the settings that select the mirror.
The provider needs Node.js 22.19 or newer as "node" on the PATH. It does not run on
Windows.`;

type Flags = FlagsOf<typeof terraformInstallCommand>;

export function addInstallCommands(program: Command, action: ActionOf): void {
  const pulumi = addHelp(program.command("pulumi"), {
    group: "Set up:",
    summary: "Install the plugin for the Pulumi CLI.",
    examples: ["gatehouse pulumi install"],
    page: "docs/guides/plugin.md",
  });
  addHelp(pulumi.command("install").action(action(installPlugin)), {
    summary: "Install the plugin where the Pulumi CLI finds it.",
    description: "Programs in every Pulumi language can then use the Gatehouse resources.",
    notes: PLUGIN_NOTES,
    examples: [
      "gatehouse pulumi install",
      "pulumi package add gatehouse    # then, in the folder of a program",
    ],
    page: "docs/guides/plugin.md",
  });
  const terraform = addHelp(program.command("terraform"), {
    group: "Set up:",
    summary: "Install the provider for Terraform or OpenTofu.",
    examples: ["gatehouse terraform install"],
    page: "docs/reference/terraform/index.md",
  });
  addHelp(terraformInstallCommand(terraform).action(action(installProvider)), {
    summary: "Install the provider where Terraform or OpenTofu finds it.",
    notes: PROVIDER_NOTES,
    examples: [
      "gatehouse terraform install",
      "gatehouse terraform install --for opentofu --mirror /srv/mirror",
    ],
    page: "docs/reference/terraform/index.md",
  });
}

const terraformInstallCommand = (terraform: Command) =>
  terraform
    .command("install")
    .addOption(
      new Option(
        "--for <program>",
        "Program that will use the provider (default: the programs on the PATH, or both if the PATH contains neither)",
      ).choices(CHOICES),
    )
    .option(
      "--mirror <folder>",
      "Install the provider into this filesystem mirror (default: .terraform.d/plugins in the home directory)",
    );

async function installPlugin({ env }: Io): Promise<CommandOutput> {
  const { installPlugin } = await import("../providers/plugin/installPlugin.ts");
  try {
    const { version, file } = await installPlugin(env);
    const text = `Installed the plugin gatehouse ${version}: ${file}
Next, in the folder of a program: pulumi package add gatehouse`;
    return { text: () => text };
  } catch (error) {
    throw installError(error, "the plugin", "Set PULUMI_HOME to another folder.");
  }
}

async function installProvider({ env }: Io, { mirror, for: choice }: Flags): Promise<CommandOutput> {
  const { installProvider, mirrorText, clisFor } = await import("../terraform/installProvider.ts");
  const programs = clisFor(env, choice);
  try {
    const { version, files, folder } = await installProvider(env, programs, mirror);
    const installed = files.map(
      ({ program, file }) => `Installed the provider gatehouse ${version} for ${program.name}: ${file}\n`,
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

/** Converts a file system error of an installation to an EngineError. Returns other errors unchanged. */
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
