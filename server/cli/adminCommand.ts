import { Command } from "commander";
import { callAdmin } from "../admin/adminClient.ts";
import type { RotateSigningKeyRequest, SetupLink } from "../admin/requests.ts";
import type { Flags } from "../config.ts";
import { announcementCommand } from "./announcementCommand.ts";
import { auditCommand } from "./auditCommand.ts";
import { invoiceCommands } from "./invoiceCommand.ts";
import { folderOf, print, subcommand } from "./subcommand.ts";
import { userCommand } from "./userCommand.ts";

async function rotateSigningKey(flags: Flags & { readonly revoke?: boolean }): Promise<void> {
  const request: RotateSigningKeyRequest = { revoke: flags.revoke ?? false };
  const { kid } = await callAdmin<{ kid: string }>(folderOf(flags), "POST", "/signing-key", request);
  print(`The key ${kid} signs from now on`);
  print(
    request.revoke
      ? "Every user has to log in again, and agents enrol anew with their next report"
      : "Logins go on: what the key before has signed is believed until it ends",
  );
}

async function setupLink(flags: Flags & { readonly signOnly?: boolean }): Promise<void> {
  const link = await callAdmin<SetupLink>(folderOf(flags), "GET", "/setup-link");
  if (link.used) process.stderr.write("The service is set up already and refuses this link: a user exists\n");
  print(flags.signOnly ? link.sign : link.url);
}

/** `gatehouse-server admin …`: commands for the service that runs on a data folder, over its local socket. */
export function adminCommand(): Command {
  const rotate = subcommand("rotate-signing-key", "Make a new key that signs tokens from now on")
    .option("--revoke", "Believe nothing any more that older keys have signed: every login ends at once")
    .action(rotateSigningKey);
  const link = subcommand("setup-link", "Print the link that makes the first user")
    .option("--sign-only", "Print the link's sign alone")
    .action(setupLink);
  const admin = new Command("admin")
    .description("Administer the service that runs on a data folder")
    .addCommand(userCommand())
    .addCommand(announcementCommand())
    .addCommand(auditCommand())
    .addCommand(rotate)
    .addCommand(link);
  for (const command of invoiceCommands()) admin.addCommand(command);
  return admin;
}
