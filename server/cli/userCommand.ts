import { addHelpEnd } from "@gatehouse-access/sdk/errors";
import { Command } from "commander";
import { callAdmin } from "../admin/adminClient.ts";
import type {
  ConfirmAddressRequest,
  ConfirmedAddress,
  CreateUserRequest,
  ListedUser,
  ResetPasswordRequest,
  UserRequest,
} from "../admin/requests.ts";
import { OperatorError } from "../OperatorError.ts";
import type { Flags } from "../settings/readConfig.ts";
import { type CommandIo, print } from "./CommandIo.ts";
import { type PasswordFlags, readPassword } from "./readPassword.ts";
import { folderOf, subcommand } from "./subcommand.ts";
import { formatTable } from "./table.ts";

function withPassword(command: Command): Command {
  return command
    .option("--password-stdin", "Read the password from the standard input (default if it is not a terminal)")
    .option("--generate-password", "Generate a password and print it once");
}

interface CreateFlags extends Flags, PasswordFlags {
  readonly name: string;
  readonly username: string;
  readonly email: string;
  readonly maxNamespaces: string;
  readonly json?: boolean;
}

async function create(io: CommandIo, flags: CreateFlags): Promise<void> {
  const maxNamespaces = Number(flags.maxNamespaces);
  if (!/^-?\d+$/.test(flags.maxNamespaces) || maxNamespaces < -1) {
    throw new OperatorError(
      `--max-namespaces must be a whole number, or -1 for no limit, not ${JSON.stringify(flags.maxNamespaces)}.`,
    );
  }
  const { name, username, email } = flags;
  const password = await readPassword(io, flags);
  const request: CreateUserRequest = { name, username, email, password, maxNamespaces };
  const { id } = await callAdmin<{ id: string }>(folderOf(io, flags), "POST", "/users", request);
  if (flags.json) {
    print(
      io,
      JSON.stringify({ id, username: username.toLowerCase(), ...(flags.generatePassword && { password }) }),
    );
    return;
  }
  print(io, `Created the user ${username.toLowerCase()} (id ${id}).`);
  if (flags.generatePassword) print(io, `Password: ${password}`);
}

async function list(io: CommandIo, flags: Flags & { readonly json?: boolean }): Promise<void> {
  const users = await callAdmin<ListedUser[]>(folderOf(io, flags), "GET", "/users");
  if (flags.json) return print(io, JSON.stringify(users));
  const header = ["USERNAME", "E-MAIL", "NAME", "STATUS", "MAX NAMESPACES", "ID"];
  const rows = users.map((user) => [
    user.username,
    user.email,
    user.name,
    user.status,
    String(user.maxNamespaces),
    user.id,
  ]);
  print(io, formatTable([header, ...rows]));
}

async function resetPassword(io: CommandIo, user: string, flags: Flags & PasswordFlags): Promise<void> {
  const password = await readPassword(io, flags);
  const request: ResetPasswordRequest = { user, password };
  await callAdmin(folderOf(io, flags), "POST", "/password", request);
  print(io, `Changed the password of ${user}.`);
  if (flags.generatePassword) print(io, `Password: ${password}`);
}

async function disableMfa(io: CommandIo, user: string, flags: Flags): Promise<void> {
  const request: UserRequest = { user };
  await callAdmin(folderOf(io, flags), "POST", "/disable-mfa", request);
  print(io, `Disabled MFA for ${user}.`);
}

async function confirmAddress(io: CommandIo, user: string, address: string, flags: Flags): Promise<void> {
  const request: ConfirmAddressRequest = { user, address };
  const { field } = await callAdmin<ConfirmedAddress>(
    folderOf(io, flags),
    "POST",
    "/confirm-address",
    request,
  );
  print(io, `The ${field === "email" ? "" : "recovery "}e-mail address of ${user} is now ${address}.`);
}

async function signOut(io: CommandIo, user: string, flags: Flags): Promise<void> {
  const request: UserRequest = { user };
  await callAdmin(folderOf(io, flags), "POST", "/sign-out", request);
  print(io, `Ended all logins of ${user}.`);
}

/** `gatehouse-server admin user …` */
export function userCommand(io: CommandIo): Command {
  const user = new Command("user").description("Manage the users of the service.");
  user.addCommand(
    withPassword(
      subcommand(
        "admin user create",
        "Create a confirmed user.",
        "--name 'Ana Ruiz' --username ana --email ana@example.org",
      ),
    )
      .requiredOption("--name <text>", "Full name")
      .requiredOption("--username <name>", "Login name")
      .requiredOption("--email <address>", "E-mail address")
      .option(
        "--max-namespaces <number>",
        "Maximum number of namespaces that the user may own; -1 = no limit",
        "-1",
      )
      .option("--json", "Print the result as JSON")
      .action((flags: CreateFlags) => create(io, flags)),
  );
  user.addCommand(
    subcommand("admin user list", "List the users.")
      .option("--json", "Print the result as JSON")
      .action((flags: Flags & { readonly json?: boolean }) => list(io, flags)),
  );
  user.addCommand(
    withPassword(
      subcommand(
        "admin user reset-password",
        "Set a new password for a user and end the user's lockouts.",
        "ana",
      ),
    )
      .argument("<user>", "User name or e-mail address of the user")
      .action((user: string, flags: Flags & PasswordFlags) => resetPassword(io, user, flags)),
  );
  user.addCommand(
    subcommand(
      "admin user disable-mfa",
      "Disable MFA for a user who lost the second factor. The user's logins stay valid.",
      "ana",
    )
      .argument("<user>", "User name or e-mail address of the user")
      .action((user: string, flags: Flags) => disableMfa(io, user, flags)),
  );
  user.addCommand(
    subcommand(
      "admin user confirm-address",
      "Confirm a new e-mail address for a user who cannot confirm it.",
      "ana ana@new.example.org",
    )
      .argument("<user>", "User name or e-mail address of the user")
      .argument("<address>", "New address that the user requested")
      .action((user: string, address: string, flags: Flags) => confirmAddress(io, user, address, flags)),
  );
  user.addCommand(
    subcommand("admin user sign-out", "End all logins of a user. API keys stay valid.", "ana")
      .argument("<user>", "User name or e-mail address of the user")
      .action((user: string, flags: Flags) => signOut(io, user, flags)),
  );
  return addHelpEnd(user, {
    examples: [
      "gatehouse-server admin user list --data-dir /var/lib/gatehouse",
      "gatehouse-server admin user reset-password ana --data-dir /var/lib/gatehouse",
    ],
    page: "docs/operate/accounts.md",
  });
}
