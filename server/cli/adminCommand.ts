import { Command } from "commander";
import { callAdmin } from "../admin/adminClient.ts";
import type { RotateSigningKeyRequest, SetupLink } from "../admin/requests.ts";
import type { Flags } from "../settings/readConfig.ts";
import { announcementCommand } from "./announcementCommand.ts";
import { auditCommand } from "./auditCommand.ts";
import { type CommandIo, print } from "./CommandIo.ts";
import { invoiceCommands } from "./invoiceCommand.ts";
import { folderOf, subcommand } from "./subcommand.ts";
import { userCommand } from "./userCommand.ts";

async function rotateSigningKey(io: CommandIo, flags: Flags & { readonly revoke?: boolean }): Promise<void> {
  const request: RotateSigningKeyRequest = { revoke: flags.revoke ?? false };
  const { kid } = await callAdmin<{ kid: string }>(folderOf(io, flags), "POST", "/signing-key", request);
  print(io, `The key ${kid} signs from now on`);
  print(
    io,
    request.revoke
      ? "Every user has to log in again, and agents enroll anew with their next report"
      : "Logins go on: what the key before has signed is believed until it ends",
  );
}

async function setupLink(io: CommandIo, flags: Flags & { readonly signOnly?: boolean }): Promise<void> {
  const link = await callAdmin<SetupLink>(folderOf(io, flags), "GET", "/setup-link");
  if (link.used) io.stderr.write("The service is set up already and refuses this link: a user exists\n");
  print(io, flags.signOnly ? link.sign : link.url);
}

/** `gatehouse-server admin …`: commands for the service that runs on a data folder, over its local socket. */
export function adminCommand(io: CommandIo): Command {
  const rotate = subcommand("rotate-signing-key", "Make a new key that signs tokens from now on")
    .option("--revoke", "Believe nothing any more that older keys have signed: every login ends at once")
    .action((flags: Flags & { readonly revoke?: boolean }) => rotateSigningKey(io, flags));
  const link = subcommand("setup-link", "Print the link that makes the first user")
    .option("--sign-only", "Print the link's sign alone")
    .action((flags: Flags & { readonly signOnly?: boolean }) => setupLink(io, flags));
  const admin = new Command("admin")
    .description("Administer the service that runs on a data folder")
    .addCommand(userCommand(io))
    .addCommand(announcementCommand(io))
    .addCommand(auditCommand(io))
    .addCommand(rotate)
    .addCommand(link);
  for (const command of invoiceCommands(io)) admin.addCommand(command);
  return admin;
}
