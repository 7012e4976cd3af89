import { type Command, Option } from "commander";
import { CHOICES, type Choice, SOURCE } from "../terraform/source.ts";
import type { ActionOf, Io } from "./io.ts";

const INSTALL_HELP = `
Configurations can then use the provider: "terraform init" or "tofu init" finds it. Both programs search .terraform.d/plugins
in the home folder by default, each in a folder of its own. With --mirror, the command prints the settings that they need.
The provider is a script: it needs Node.js 22.19 or newer as "node" on the PATH, and does not run on Windows.

Exit codes: 0 installed; 1 the folder cannot be written.`;

interface Flags {
  readonly mirror?: string;
  readonly for?: Choice;
}

/** Adds terraform, which connects Gatehouse with Terraform and OpenTofu. */
export function addTerraformCommand(program: Command, action: ActionOf): void {
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
    .addHelpText("after", INSTALL_HELP)
    .action(action(install));
}

async function install({ env, stdout, stderr }: Io, { mirror, for: choice }: Flags): Promise<number> {
  const { installProvider, mirrorText, programsFor } = await import("../terraform/install.ts");
  const programs = programsFor(env, choice);
  const joined = (texts: readonly string[], word: string) => texts.join(` ${word} `);
  try {
    const { version, files, folder } = await installProvider(env, programs, mirror);
    for (const { program, file } of files)
      stdout.write(`The provider gatehouse ${version} is installed for ${program.name}: ${file}\n`);
    if (mirror !== undefined) {
      const places = programs.map(({ name, settings }) => `${settings} of ${name}`);
      stdout.write(`\nAdd to ${joined(places, "and")}:\n\n${mirrorText(folder)}`);
    }
    const inits = programs.map(({ command }) => `${command} init`);
    stdout.write(`\nIn a configuration:\n\n${requirementText(version)}\nThen: ${joined(inits, "or")}\n`);
    return 0;
  } catch (error) {
    const { code, path, message } = error as NodeJS.ErrnoException;
    stderr.write(
      code === undefined
        ? `error: ${message}\n`
        : `error: Cannot write ${path ?? "the provider"} (${code}). Choose another folder with --mirror.\n`,
    );
    return 1;
  }
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
