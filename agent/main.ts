import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { hostname } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { createClient, isLoopbackHost, proxiesFromEnvironment } from "@gatehouse-access/sdk";
import { devices, issueText, tenantId } from "@gatehouse-access/sdk/contract";
import { addHelpEnd, misspelledVariables, reportUsage } from "@gatehouse-access/sdk/errors";
import { Command, CommanderError, Option } from "commander";
import { z } from "zod";
import { Agent } from "./Agent.ts";
import { becomeUser, checkUser, deviceKey, machineAddress, UsageError } from "./identity.ts";
import { hashPassword, passwordCheck } from "./password.ts";
import type { Log } from "./SessionChannel.ts";
import { ServicePin } from "./servicePin.ts";
import { installedSftpServer, isProgram } from "./sftp.ts";

const WRONG_USAGE = 2;

/**
 * Names of commands and options that users may know from other programs, and the matching name in `gatehouse-agent`.
 * Error messages suggest the matching name.
 */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  start: "run",
  serve: "run",
  connect: "run",
  enroll: "run",
  hash: "hash-password",
  passwd: "hash-password",
  "--namespace": "--tenant",
  "--server": "--url",
  "--name": "--hostname",
  "--data": "--data-dir",
};

const NOTES = `
Exit codes of all commands:
  0  OK, stopped by a signal
  1  Error
  2  Wrong usage`;

const RUN_NOTES = `
Set GATEHOUSE_AGENT_PASSWORD_HASH to the output of "gatehouse-agent hash-password" to
allow logins with this password. Without it, only keys can log in.`;

/** The documentation page that the help texts refer to. */
const PAGE = "docs/operate/gateway.md";

/**
 * The version of the package. The agent reads the version at its start, because the user to which it later switches may
 * not be able to read the package.
 */
const version = (() => {
  const file = join(import.meta.dirname, import.meta.filename.endsWith(".ts") ? "" : "..", "package.json");
  return (JSON.parse(readFileSync(file, "utf8")) as { version: string }).version;
})();

const onOrOff = z.stringbool({ truthy: ["on"], falsy: ["off"], error: "must be on or off" });

/** The value of `--sftp-server` that selects the agent's own file server. */
const INTERNAL = "internal";

const settings = z.object({
  url: z.url({
    protocol: /^https?$/,
    error: "must be the address of the service, and begin with https:// or http://",
  }),
  tenant: tenantId,
  hostname: devices.deviceName,
  mac: z.string().min(1).max(64).optional(),
  dataDir: z.string().min(1),
  logins: z
    .string()
    .transform((names) => names.split(",").map((name) => name.trim()))
    .pipe(z.array(z.string().min(1)))
    .optional(),
  user: z.string().min(1).optional(),
  shell: z.string().startsWith("/", "must be the path of a shell").optional(),
  sftpServer: z
    .string()
    .refine((path) => path === INTERNAL || (path.startsWith("/") && isProgram(path)), {
      error: `must be the path of an executable file, or ${INTERNAL}`,
    })
    .optional(),
  allowForwarding: onOrOff,
  allowHttp: onOrOff,
});

/** Returns the machine's host name, converted to a valid device name. */
const defaultName = (): string =>
  hostname()
    .toLowerCase()
    .replaceAll(/[^a-z0-9_-]/g, "-")
    .slice(0, 64);

function option(flags: string, about: string, variable: string, fallback?: string): Option {
  const created = new Option(flags, about).env(variable);
  return fallback === undefined ? created : created.default(fallback);
}

function runCommand(): Command {
  const command = new Command("run").description("Enroll this machine as a device and accept logins.");
  addHelpEnd(command, {
    notes: RUN_NOTES,
    examples: [
      "gatehouse-agent run --url https://gate.example.org --tenant <id> --hostname edge-01",
      "gatehouse-agent run --url https://gate.example.org --tenant <id> --logins deploy,backup",
    ],
    page: PAGE,
  });
  return command
    .addOption(option("--url <url>", "Address of the service", "GATEHOUSE_URL").makeOptionMandatory())
    .addOption(
      option(
        "--tenant <id>",
        "Id of the namespace to enroll in",
        "GATEHOUSE_AGENT_TENANT",
      ).makeOptionMandatory(),
    )
    .addOption(
      option("--hostname <name>", "Name of a new device", "GATEHOUSE_AGENT_HOSTNAME").default(
        defaultName(),
        "the host name of the machine",
      ),
    )
    .addOption(
      option(
        "--mac <address>",
        "Address that identifies the machine (default: the MAC address of its first network card)",
        "GATEHOUSE_AGENT_MAC",
      ),
    )
    .addOption(
      option(
        "--data-dir <folder>",
        "Folder for the key of the device",
        "GATEHOUSE_AGENT_DATA_DIR",
        "gatehouse-agent-data",
      ),
    )
    .addOption(
      option(
        "--logins <names>",
        "Allowed login names, separated by commas; * allows every name; all programs run as the user of this process " +
          "(default: the name of this user)",
        "GATEHOUSE_AGENT_LOGINS",
      ),
    )
    .addOption(
      option(
        "--user <name>",
        "User to switch to if started as root; root accepts no logins",
        "GATEHOUSE_AGENT_USER",
      ),
    )
    .addOption(
      option("--shell <path>", "Shell of logins (default: the shell of the user)", "GATEHOUSE_AGENT_SHELL"),
    )
    .addOption(
      option(
        "--sftp-server <path>",
        "SFTP server program, or internal for the agent's own SFTP server (default: OpenSSH's sftp-server if it is installed, " +
          "else internal)",
        "GATEHOUSE_AGENT_SFTP_SERVER",
      ),
    )
    .addOption(
      option(
        "--allow-forwarding [on|off]",
        "Allow logins to open connections to other addresses",
        "GATEHOUSE_AGENT_ALLOW_FORWARDING",
        "off",
      ).preset("on"),
    )
    .addOption(
      option(
        "--allow-http [on|off]",
        "Allow an http:// URL of another machine. An attacker on the network can then read the device's token and log in",
        "GATEHOUSE_AGENT_ALLOW_HTTP",
        "off",
      ).preset("on"),
    );
}

/**
 * Configures the help of a command and its subcommands. Disables the error output of Commander, because `main` prints
 * the errors.
 */
function configure(command: Command): void {
  command.helpOption("-h, --help", "Print help").configureOutput({ outputError: () => {} });
  if (command.commands.length > 0) command.helpCommand("help [command]", "Print the help of a command.");
  for (const child of command.commands) configure(child);
}

/**
 * Runs `gatehouse-agent`.
 * @param args arguments after the name of the command
 * @returns the exit code: 0 after SIGINT or SIGTERM, 1 for a failure, 2 for wrong usage
 */
export async function main(args: readonly string[]): Promise<number> {
  for (const text of misspelledVariables(Object.keys(process.env), () => new Command()))
    console.error(`gatehouse-agent: Warning: ${text}`);
  const program = newProgram();
  reportUsage(program, OTHER_NAMES, (message) => new UsageError(message));
  // Without these handlers, a failed write by Commander would end the process with a stack trace.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
  try {
    await program.parseAsync(args, { from: "user" });
    return 0;
  } catch (error) {
    // Commander throws this error after it prints the help or the version.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : WRONG_USAGE;
    for (const line of (error as Error).message.split("\n")) console.error(`gatehouse-agent: ${line}`);
    return error instanceof UsageError ? WRONG_USAGE : 1;
  }
}

/** Returns the command `gatehouse-agent`. */
export function newProgram(): Command {
  const program = new Command("gatehouse-agent")
    .description("Agent for a device of the remote SSH access service.")
    .version(version, "-V, --version", "Print the version");
  program.addCommand(runCommand().action(run));
  const hash = program
    .command("hash-password")
    .description("Read a password from the standard input and print its hash.")
    .action(async () => console.log(await hashPassword((await text(process.stdin)).replace(/\r?\n$/, ""))));
  addHelpEnd(hash, { examples: ["gatehouse-agent hash-password < password.txt"], page: PAGE });
  addHelpEnd(program, {
    notes: NOTES,
    examples: ["gatehouse-agent run --url https://gate.example.org --tenant <id>"],
    page: PAGE,
  });
  configure(program);
  return program;
}

/** @throws UsageError with a line for each wrong setting */
function readSettings(flags: object): z.output<typeof settings> {
  const read = settings.safeParse(flags, { error: issueText });
  if (read.success) return read.data;
  const lines = read.error.issues.map(({ path: [name = ""], message }) => {
    const words = String(name).replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    const variable = `GATEHOUSE_${name === "url" ? "" : "AGENT_"}${words.replaceAll("-", "_").toUpperCase()}`;
    const remedy = name === "tenant" ? " Run `gatehouse namespace list`, which prints the ids." : "";
    return `--${words} (${variable}) ${message}.${remedy}`;
  });
  throw new UsageError([...new Set(lines)].join("\n"));
}

/**
 * Sends a request to this process, so that the HTTP client loads its parser before the switch to a different user. That
 * user may not be able to read the folder of the package.
 */
async function loadHttpParser(): Promise<void> {
  const server = createServer((_, response) => response.end()).listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = createClient({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
  try {
    await client.healthcheck();
  } finally {
    await client.close();
    server.close();
  }
}

/** @throws UsageError if the address belongs to a different machine and its scheme is `http` */
function refusePlainHttp(url: string): void {
  const { protocol, hostname: host } = new URL(url);
  if (protocol === "https:" || isLoopbackHost(host)) return;
  throw new UsageError(
    "--url: http:// to another machine is not allowed, because an attacker on the network could log in to this device. " +
      "Use https://, or set --allow-http (GATEHOUSE_AGENT_ALLOW_HTTP=on).",
  );
}

async function run(flags: object): Promise<void> {
  const { user, dataDir, mac, logins, shell, sftpServer, allowHttp, ...rest } = readSettings(flags);
  if (!allowHttp) refusePlainHttp(rest.url);
  const proxyFor = proxiesFromEnvironment(process.env);
  const proxy = proxyFor(new URL(rest.url));
  const passwordFits = passwordCheck(process.env.GATEHOUSE_AGENT_PASSWORD_HASH);
  checkUser(user);
  await loadHttpParser();
  // Users who log in must not be able to read the key. So the agent reads the key before it switches from root to the
  // user of the logins.
  const key = deviceKey(dataDir);
  const pin = new ServicePin(dataDir);
  const { username, home, shell: defaultShell } = becomeUser(user);
  const log: Log = (level, message, facts = {}) =>
    console.log(JSON.stringify({ level, time: Date.now(), ...facts, msg: message }));
  if (proxy) log("info", "the agent uses a proxy", { proxy: proxy.address, setting: proxy.setting });
  const agent = new Agent({
    ...rest,
    proxyFor,
    version: `v${version}`,
    key,
    pin,
    mac: mac ?? machineAddress(key),
    logins: logins ?? [username],
    user: { name: username, home, shell: shell ?? defaultShell },
    sftpServer: sftpServer === INTERNAL ? undefined : (sftpServer ?? installedSftpServer()),
    passwordFits,
    log,
  });
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => agent.stop());
  await agent.run();
}
