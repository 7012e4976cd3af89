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
import type { Flags } from "../config.ts";
import { OperatorError } from "../OperatorError.ts";
import { type PasswordFlags, readPassword } from "./readPassword.ts";
import { folderOf, print, subcommand } from "./subcommand.ts";
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

async function create(flags: CreateFlags): Promise<void> {
  const maxNamespaces = Number(flags.maxNamespaces);
  if (!/^-?\d+$/.test(flags.maxNamespaces) || maxNamespaces < -1) {
    throw new OperatorError(
      `--max-namespaces is ${JSON.stringify(flags.maxNamespaces)}: it must be a whole number, or -1 for no limit`,
    );
  }
  const { name, username, email } = flags;
  const password = await readPassword(flags);
  const request: CreateUserRequest = { name, username, email, password, maxNamespaces };
  const { id } = await callAdmin<{ id: string }>(folderOf(flags), "POST", "/users", request);
  if (flags.json) {
    print(
      JSON.stringify({ id, username: username.toLowerCase(), ...(flags.generatePassword && { password }) }),
    );
    return;
  }
  print(`User ${username.toLowerCase()} created, id ${id}`);
  if (flags.generatePassword) print(`Password: ${password}`);
}

async function list(flags: Flags & { readonly json?: boolean }): Promise<void> {
  const users = await callAdmin<ListedUser[]>(folderOf(flags), "GET", "/users");
  if (flags.json) return print(JSON.stringify(users));
  const header = ["USERNAME", "E-MAIL", "NAME", "STATUS", "MAX NAMESPACES", "ID"];
  const rows = users.map((user) => [
    user.username,
    user.email,
    user.name,
    user.status,
    String(user.maxNamespaces),
    user.id,
  ]);
  print(formatTable([header, ...rows]));
}

async function resetPassword(user: string, flags: Flags & PasswordFlags): Promise<void> {
  const password = await readPassword(flags);
  const request: ResetPasswordRequest = { user, password };
  await callAdmin(folderOf(flags), "POST", "/password", request);
  print(`The password of ${user} is changed`);
  if (flags.generatePassword) print(`Password: ${password}`);
}

async function disableMfa(user: string, flags: Flags): Promise<void> {
  const request: UserRequest = { user };
  await callAdmin(folderOf(flags), "POST", "/disable-mfa", request);
  print(`${user} logs in without a second factor from now on`);
}

async function confirmAddress(user: string, address: string, flags: Flags): Promise<void> {
  const request: ConfirmAddressRequest = { user, address };
  const { field } = await callAdmin<ConfirmedAddress>(folderOf(flags), "POST", "/confirm-address", request);
  print(`${address} is the ${field === "email" ? "" : "recovery "}e-mail address of ${user} from now on`);
}

async function signOut(user: string, flags: Flags): Promise<void> {
  const request: UserRequest = { user };
  await callAdmin(folderOf(flags), "POST", "/sign-out", request);
  print(`Every login of ${user} has ended`);
}

/** `gatehouse-server admin user …` */
export function userCommand(): Command {
  const user = new Command("user").description("Users of the service");
  user.addCommand(
    withPassword(subcommand("create", "Make a confirmed user"))
      .requiredOption("--name <text>", "Full name")
      .requiredOption("--username <name>", "Login name")
      .requiredOption("--email <address>", "E-mail address")
      .option("--max-namespaces <number>", "Namespaces the user may own; -1: no limit", "-1")
      .option("--json", "Print JSON")
      .action(create),
  );
  user.addCommand(subcommand("list", "List the users").option("--json", "Print JSON").action(list));
  user.addCommand(
    withPassword(subcommand("reset-password", "Give a user a new password and end the user's lockouts"))
      .argument("<user>", "Username or e-mail")
      .action(resetPassword),
  );
  user.addCommand(
    subcommand("disable-mfa", "Turn MFA off for a user who has lost the second factor; its logins go on")
      .argument("<user>", "Username or e-mail")
      .action(disableMfa),
  );
  user.addCommand(
    subcommand(
      "confirm-address",
      "Let an e-mail address take effect that the user has asked for and not confirmed",
    )
      .argument("<user>", "Username or e-mail")
      .argument("<address>", "The new address, as the user names it to you")
      .action(confirmAddress),
  );
  user.addCommand(
    subcommand("sign-out", "End all logins of a user; API keys are not affected")
      .argument("<user>", "Username or e-mail")
      .action(signOut),
  );
  return user;
}
