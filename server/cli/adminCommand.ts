import { addHelpEnd } from "@gatehouse-access/sdk/errors";
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
  print(io, `New tokens are signed with the key ${kid}.`);
  print(
    io,
    request.revoke
      ? "All tokens of older keys are revoked. Users must log in again, and agents enroll again with their next report."
      : "Tokens of the previous key stay valid until they expire.",
  );
}

async function setupLink(io: CommandIo, flags: Flags & { readonly signOnly?: boolean }): Promise<void> {
  const link = await callAdmin<SetupLink>(folderOf(io, flags), "GET", "/setup-link");
  if (link.used) io.stderr.write("A user exists, so the service is set up and rejects this link.\n");
  print(io, flags.signOnly ? link.sign : link.url);
}

/**
 * Creates the command `gatehouse-server admin`. Its subcommands control a running service, over the local socket in the
 * data folder of the service.
 */
export function adminCommand(io: CommandIo): Command {
  const rotate = subcommand("admin rotate-signing-key", "Create a new key to sign tokens.")
    .option("--revoke", "Revoke all tokens of older keys, which ends every login at once")
    .action((flags: Flags & { readonly revoke?: boolean }) => rotateSigningKey(io, flags));
  const link = subcommand("admin setup-link", "Print the link to create the first user.")
    .option("--sign-only", "Print only the signature of the link")
    .action((flags: Flags & { readonly signOnly?: boolean }) => setupLink(io, flags));
  const admin = new Command("admin")
    .description("Administer the running service of a data folder.")
    .addCommand(userCommand(io))
    .addCommand(announcementCommand(io))
    .addCommand(auditCommand(io))
    .addCommand(rotate)
    .addCommand(link);
  for (const command of invoiceCommands(io)) admin.addCommand(command);
  return addHelpEnd(admin, {
    examples: [
      "gatehouse-server admin user list --data-dir /var/lib/gatehouse",
      "gatehouse-server admin audit --data-dir /var/lib/gatehouse",
    ],
    page: "docs/operate/accounts.md",
  });
}
