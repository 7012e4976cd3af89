import { resolve } from "node:path";
import { SOURCE } from "../../terraform/source.ts";
import { dataFolderOf } from "../../terraform/workspace.ts";
import { isStartedByTerraform, servePlugin } from "./goPlugin.ts";
import { TerraformProvider } from "./terraformProvider.ts";

const HELP = `terraform-provider-gatehouse is the Gatehouse provider for Terraform. Terraform starts it automatically.
Install it with "gatehouse terraform install". With -debug, it prints the variable TF_REATTACH_PROVIDERS and runs until
you stop it. With this variable set, Terraform attaches to the running provider.`;

/** Runs the provider until Terraform or the user stops it. */
async function main(args: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  const attachable = args.some((arg) => /^--?debug$/.test(arg));
  if (!attachable && !isStartedByTerraform(env)) {
    console.error(HELP);
    process.exitCode = 1;
    return;
  }
  // A provider in debug mode has no data directory: it serves several root modules, and runs plans and applies in the
  // same process. Otherwise, the path is absolute because of a Node.js problem: `mkdirSync` with the option `recursive`
  // never returns for a relative path if the working directory no longer exists.
  const dataFolder = attachable ? undefined : resolve(dataFolderOf(".", env));
  const provider = new TerraformProvider(env, dataFolder);
  const line = await servePlugin(provider.methods(), SOURCE, { env, attachable });
  process.stdout.write(attachable ? `TF_REATTACH_PROVIDERS='${line}'\n` : `${line}\n`);
}

main(process.argv.slice(2), process.env).catch((error: unknown) => {
  console.error(`terraform-provider-gatehouse: ${error instanceof Error ? error.message : error}`);
  process.exit(1);
});
