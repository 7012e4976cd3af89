import type { Command } from "commander";
import { SOURCE } from "../terraform/source.ts";
import type { ActionOf, Io } from "./io.ts";

const INSTALL_HELP = `
Configurations can then use the provider; "terraform init" finds it. Terraform looks into .terraform.d/plugins in the
home folder by itself; of another folder, its own configuration must say that it is a mirror, which is printed then. The
provider is a script: it needs Node.js 22.19 or newer as "node" on the PATH of Terraform, and does not run on Windows.

Exit codes: 0 installed; 1 the folder cannot be written.`;

interface Flags {
  readonly mirror?: string;
}

/** Adds terraform, which connects Gatehouse with Terraform. */
export function addTerraformCommand(program: Command, action: ActionOf): void {
  program
    .command("terraform")
    .description("connect Gatehouse with Terraform")
    .command("install")
    .description("place the provider where Terraform finds it")
    .option("--mirror <folder>", "the mirror to place it in; default .terraform.d/plugins in the home folder")
    .addHelpText("after", INSTALL_HELP)
    .action(action(install));
}

async function install({ env, stdout, stderr }: Io, { mirror }: Flags): Promise<number> {
  const { installProvider } = await import("../terraform/install.ts");
  try {
    const { version, file, folder, isImplied } = await installProvider(env, mirror);
    stdout.write(`The provider gatehouse ${version} is installed: ${file}\n`);
    if (!isImplied)
      stdout.write(`\nIn the configuration of Terraform itself (~/.terraformrc):\n\n${mirrorText(folder)}`);
    stdout.write(`\nIn a configuration:\n\n${requirementText(version)}\nThen: terraform init\n`);
    return 0;
  } catch (error) {
    const { code, path, message } = error as NodeJS.ErrnoException;
    stderr.write(
      code === undefined
        ? `error: ${message}\n`
        : `error: can not write ${path ?? "the provider"} (${code}); --mirror names another folder\n`,
    );
    return 1;
  }
}

const mirrorText = (folder: string) => `provider_installation {
  filesystem_mirror {
    path    = ${JSON.stringify(folder)}
    include = ["${SOURCE}"]
  }
  direct {
    exclude = ["${SOURCE}"]
  }
}
`;

const requirementText = (version: string) => `terraform {
  required_providers {
    gatehouse = {
      source  = "${SOURCE}"
      version = "${version}"
    }
  }
}
`;
