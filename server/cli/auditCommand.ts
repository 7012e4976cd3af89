import type { Command } from "commander";
import { callAdmin } from "../admin/adminClient.ts";
import type { WireEntry } from "../features/audit/audit.ts";
import type { Flags } from "../settings/readConfig.ts";
import { type CommandIo, print } from "./CommandIo.ts";
import { folderOf, subcommand } from "./subcommand.ts";
import { formatTable } from "./table.ts";

interface AuditFlags extends Flags {
  readonly tenant?: string;
  readonly limit: string;
  readonly json?: boolean;
}

function rowOf({ at, actor, address, operation, object, before, after }: WireEntry): string[] {
  const change = `${JSON.stringify(before)} -> ${JSON.stringify(after)}`;
  const who = actor.kind === "operator" ? "operator" : `${actor.kind} ${actor.name || actor.id}`;
  return [at, who, address, operation, `${object.kind} ${object.id}`, change];
}

async function audit(io: CommandIo, flags: AuditFlags): Promise<void> {
  const query = new URLSearchParams({ limit: flags.limit, ...(flags.tenant && { tenant: flags.tenant }) });
  const entries = await callAdmin<WireEntry[]>(folderOf(io, flags), "GET", `/audit?${query}`);
  if (flags.json) return print(io, JSON.stringify(entries));
  print(io, formatTable([["TIME", "WHO", "FROM", "OPERATION", "OBJECT", "CHANGE"], ...entries.map(rowOf)]));
}

/**
 * Creates the command `gatehouse-server admin audit`, which prints audit trail entries. Without `--tenant`, it prints
 * the changes to accounts and the changes by commands. With `--tenant`, it prints the changes in that namespace.
 */
export function auditCommand(io: CommandIo): Command {
  const about =
    "List changes to accounts and changes by commands, or changes in one namespace, latest first.";
  return subcommand("admin audit", about, "--tenant <id> --limit 100")
    .option("--tenant <id>", "List the changes in this namespace, even if the namespace is deleted")
    .option("--limit <number>", "Maximum number of entries, 1 to 1000", "50")
    .option("--json", "Print the entries as JSON")
    .action((flags: AuditFlags) => audit(io, flags));
}
