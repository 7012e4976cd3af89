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
    .option("--password-stdin", "Read the password from stdin, as is done whenever stdin is no terminal")
    .option("--generate-password", "Make a password and print it once");
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
      `--max-namespaces is ${JSON.stringify(flags.maxNamespaces)}: it must be a whole number, or -1 for no limit`,
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
  print(io, `User ${username.toLowerCase()} created, id ${id}`);
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
  print(io, `The password of ${user} is changed`);
  if (flags.generatePassword) print(io, `Password: ${password}`);
}

async function disableMfa(io: CommandIo, user: string, flags: Flags): Promise<void> {
  const request: UserRequest = { user };
  await callAdmin(folderOf(io, flags), "POST", "/disable-mfa", request);
  print(io, `${user} logs in without a second factor from now on`);
}

async function confirmAddress(io: CommandIo, user: string, address: string, flags: Flags): Promise<void> {
  const request: ConfirmAddressRequest = { user, address };
  const { field } = await callAdmin<ConfirmedAddress>(
    folderOf(io, flags),
    "POST",
    "/confirm-address",
    request,
  );
  print(io, `${address} is the ${field === "email" ? "" : "recovery "}e-mail address of ${user} from now on`);
}

async function signOut(io: CommandIo, user: string, flags: Flags): Promise<void> {
  const request: UserRequest = { user };
  await callAdmin(folderOf(io, flags), "POST", "/sign-out", request);
  print(io, `Every login of ${user} has ended`);
}

/** `gatehouse-server admin user …` */
export function userCommand(io: CommandIo): Command {
  const user = new Command("user").description("Users of the service");
  user.addCommand(
    withPassword(subcommand("create", "Make a confirmed user"))
      .requiredOption("--name <text>", "Full name")
      .requiredOption("--username <name>", "Login name")
      .requiredOption("--email <address>", "E-mail address")
      .option("--max-namespaces <number>", "Namespaces the user may own; -1: no limit", "-1")
      .option("--json", "Print JSON")
      .action((flags: CreateFlags) => create(io, flags)),
  );
  user.addCommand(
    subcommand("list", "List the users")
      .option("--json", "Print JSON")
      .action((flags: Flags & { readonly json?: boolean }) => list(io, flags)),
  );
  user.addCommand(
    withPassword(subcommand("reset-password", "Give a user a new password and end the user's lockouts"))
      .argument("<user>", "Username or e-mail")
      .action((user: string, flags: Flags & PasswordFlags) => resetPassword(io, user, flags)),
  );
  user.addCommand(
    subcommand("disable-mfa", "Turn MFA off for a user who has lost the second factor; its logins go on")
      .argument("<user>", "Username or e-mail")
      .action((user: string, flags: Flags) => disableMfa(io, user, flags)),
  );
  user.addCommand(
    subcommand(
      "confirm-address",
      "Let an e-mail address take effect that the user has asked for and not confirmed",
    )
      .argument("<user>", "Username or e-mail")
      .argument("<address>", "The new address, as the user names it to you")
      .action((user: string, address: string, flags: Flags) => confirmAddress(io, user, address, flags)),
  );
  user.addCommand(
    subcommand("sign-out", "End all logins of a user; API keys are not affected")
      .argument("<user>", "Username or e-mail")
      .action((user: string, flags: Flags) => signOut(io, user, flags)),
  );
  return user;
}
