import { resolve } from "node:path";
import { Command } from "commander";
import { callAdmin } from "../admin/adminClient.ts";
import type { CreateUserRequest, ListedUser, ResetPasswordRequest, SetupLink } from "../admin/requests.ts";
import { type Flags, readSettings } from "../config.ts";
import { OperatorError } from "../OperatorError.ts";
import { settings } from "../settings.ts";
import { type PasswordFlags, readPassword } from "./readPassword.ts";
import { addOption } from "./serveCommand.ts";
import { formatTable } from "./table.ts";

const print = (line: string): void => void process.stdout.write(`${line}\n`);

function folderOf(flags: Flags): string {
  return resolve(readSettings(["dataDir"], process.env, flags).dataDir);
}

function subcommand(name: string, about: string): Command {
  const command = new Command(name).description(about);
  addOption(command, settings.dataDir);
  return command;
}

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

async function setupLink(flags: Flags & { readonly signOnly?: boolean }): Promise<void> {
  const link = await callAdmin<SetupLink>(folderOf(flags), "GET", "/setup-link");
  if (link.used) process.stderr.write("The service is set up already and refuses this link: a user exists\n");
  print(flags.signOnly ? link.sign : link.url);
}

/** `gatehouse-server admin …`: commands for the service that runs on a data folder, over its local socket. */
export function adminCommand(): Command {
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
  const link = subcommand("setup-link", "Print the link that makes the first user")
    .option("--sign-only", "Print the link's sign alone")
    .action(setupLink);
  return new Command("admin")
    .description("Administer the service that runs on a data folder")
    .addCommand(user)
    .addCommand(link);
}
