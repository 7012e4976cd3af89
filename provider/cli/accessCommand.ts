import { type Command, Option } from "commander";
import type { AccessFlags } from "../access/inquiry.ts";
import type { Connection } from "../service/connection.ts";
import {
  addConfigurationFlags,
  addTerraformFlag,
  allowIncompleteOption,
  type ConfigurationFlags,
  collect,
  FOLDER,
  type TerraformFlags,
} from "./flags.ts";
import { addHelp } from "./help.ts";
import { type ActionOf, BLOCKED, type Io, type Outcome } from "./outcome.ts";
import { planOrConfiguration } from "./planFiles.ts";
import { withConnection } from "./service.ts";

interface Flags extends AccessFlags, ConfigurationFlags, TerraformFlags {
  readonly folder: string;
  readonly allowIncomplete: boolean;
  readonly json?: boolean;
  readonly csv?: boolean;
}

const NOTES = `
Exit codes: 0 = OK, even if there is no access; 1 = error; ${BLOCKED} = a part could not be
checked, the access is not known, or with --explain: the login is refused`;

export function addAccessCommand(program: Command, action: ActionOf): void {
  const command = program
    .command("access")
    .option(
      "--device <name|tag>",
      "Select devices by name (* matches any text, ? one character), uid or tag. Use the prefix name:, uid: or tag: to match only one kind; repeatable",
      collect,
    )
    .option(
      "--key <key>",
      "Select keys by fingerprint, the beginning of a fingerprint, or name (* matches any text, ? one character); repeatable",
      collect,
    )
    .option(
      "--user <user>",
      "Select users and service accounts by e-mail address, name or id (* matches any text, ? one character), in a namespace that decides by access policies; repeatable",
      collect,
    )
    .option(
      "--person <e-mail>",
      "Select the public keys that belong to this member, or the member in a namespace that decides by access policies",
    )
    .option(
      "--at <time>",
      "Show the access at this time, such as 2026-12-01T18:00Z. The time needs an offset from UTC, or Z (default: now)",
    )
    .option("--login <name>", "Select access with this login name; repeatable", collect)
    .option("--from <address>", "Select access from this source IP address; repeatable", collect)
    .option(
      "--explain",
      "Explain why one login to one device with one key, or by one user, is allowed or refused",
    )
    .addOption(new Option("--json", "Print the complete result as JSON").conflicts("csv"))
    .addOption(allowIncompleteOption())
    .option("--csv", "Print a CSV line for each key or user, login, group of addresses and device");
  addTerraformFlag(command, "Show the access after this plan of Terraform or OpenTofu");
  addConfigurationFlags(command)
    .option("--folder <folder>", `${FOLDER}, for --stack`, ".")
    .action(action(access));
  addHelp(command, {
    group: "Review access:",
    summary: "Show who can reach which devices, by which key and rule or access policy.",
    notes: NOTES,
    examples: [
      "gatehouse access --device tag:prod",
      "gatehouse access --key ana --login root --from 203.0.113.7 --device web-01 --explain",
      "gatehouse access --person ana@example.com --at 2026-12-01T18:00+01:00",
      "gatehouse access --csv > access.csv",
    ],
    page: "docs/guides/access.md",
  });
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
    return accessAnswer(
      { ...after, notEvaluated: [...terraform.notEvaluated, ...after.notEvaluated] },
      inquiry,
    );
  };
  const { refused, notEvaluated, remarks, output } = await withConnection(
    io,
    configuration,
    answer,
    terraform && "terraform",
  );
  for (const remark of remarks) io.stderr.write(`${remark}\n`);
  return { parts: output, exitCode: refused || (notEvaluated && !flags.allowIncomplete) ? BLOCKED : 0 };
}
