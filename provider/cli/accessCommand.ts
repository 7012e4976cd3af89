import { type Command, Option } from "commander";
import type { AccessFlags } from "../access/inquiry.ts";
import type { Connection } from "../service/connection.ts";
import {
  addConfigurationFlags,
  addTerraformFlag,
  allowUnseenOption,
  type ConfigurationFlags,
  collect,
  type TerraformFlags,
} from "./flags.ts";
import { type ActionOf, BLOCKED, type Io, type Outcome } from "./outcome.ts";
import { planOrConfiguration } from "./planFiles.ts";
import { withConnection } from "./service.ts";

interface Flags extends AccessFlags, ConfigurationFlags, TerraformFlags {
  readonly folder: string;
  readonly allowUnseen: boolean;
  readonly json?: boolean;
  readonly csv?: boolean;
}

const EXIT_CODES = `
Asks the service that GATEHOUSE_URL names, with the credential and in the namespace of the other GATEHOUSE_ variables.
With --stack, what they leave open is read from that stack's configuration: gatehouse:url, gatehouse:token, …

Exit codes: 0 answered, also where nobody can reach anything; 1 an error: connection, service, a wrong flag;
${BLOCKED} the login of --explain is refused, or the answer leaves out what could not be looked at.`;

export function addAccessCommand(program: Command, action: ActionOf): void {
  const command = program
    .command("access")
    .description("show who can reach which devices, by which key and rule, or why")
    .option(
      "--device <name|tag>",
      "only these devices: name (* stands for any text, ? for one character), uid or tag; or tag:…, name:…, uid:…; may be repeated",
      collect,
    )
    .option(
      "--key <key>",
      "only these keys: fingerprint, its beginning, or name (* stands for any text, ? for one character); may be repeated",
      collect,
    )
    .option("--login <name>", "only this login name; may be repeated", collect)
    .option("--from <address>", "only from this IP address; may be repeated", collect)
    .option("--explain", "why one key may or may not log in on one device")
    .addOption(new Option("--json", "print the whole answer as JSON").conflicts("csv"))
    .addOption(allowUnseenOption())
    .option("--csv", "print one line for each key, login name, group of addresses and device");
  addTerraformFlag(command, "as this plan of Terraform or OpenTofu will leave it");
  addConfigurationFlags(command)
    .option("--folder <folder>", "folder with Pulumi.yaml, for --stack", ".")
    .addHelpText("after", EXIT_CODES)
    .action(action(access));
}

async function access(io: Io, { json, csv, ...flags }: Flags): Promise<Outcome> {
  const { accessAnswer } = await import("../access/answer.ts");
  const { accessInquiry } = await import("../access/inquiry.ts");
  const { readEstate } = await import("../estate/namespaceState.ts");
  const inquiry = accessInquiry(flags, json ? "json" : csv ? "csv" : "text");
  const { terraform, configuration } = await planOrConfiguration(io, flags.folder, flags);
  const answer = async (connection: Connection) => {
    if (!terraform) return accessAnswer(await readEstate(connection), inquiry);
    const { plannedNamespace } = await import("../review/testedNamespace.ts");
    const { after } = await plannedNamespace(connection, terraform.plan);
    return accessAnswer({ ...after, unseen: [...terraform.unseen, ...after.unseen] }, inquiry);
  };
  const { refused, unseen, remarks, output } = await withConnection(io, configuration, answer);
  for (const remark of remarks) io.stderr.write(`${remark}\n`);
  return { parts: output, exitCode: refused || (unseen && !flags.allowUnseen) ? BLOCKED : 0 };
}
