import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { hostname } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { createClient } from "@gatehouse-access/sdk";
import { devices, tenantId } from "@gatehouse-access/sdk/contract";
import { Command, CommanderError, Option } from "commander";
import { z } from "zod";
import { Agent } from "./Agent.ts";
import { becomeUser, checkUser, deviceKey, machineAddress, UsageError } from "./identity.ts";
import { hashPassword, passwordCheck } from "./password.ts";
import { ServicePin } from "./servicePin.ts";
import { installedSftpServer, isProgram } from "./sftp.ts";

const wrongUsage = 2;

/** The version of the package. It is read at the start, because the agent's user may not be allowed to read the package. */
const version = (() => {
  const file = join(import.meta.dirname, import.meta.filename.endsWith(".ts") ? "" : "..", "package.json");
  return (JSON.parse(readFileSync(file, "utf8")) as { version: string }).version;
})();

const onOrOff = z.stringbool({ truthy: ["on"], falsy: ["off"], error: "must be on or off" });

/** The value of `--sftp-server` with which the agent serves files itself. */
const INTERNAL = "internal";

const settings = z.object({
  url: z.url({
    protocol: /^https?$/,
    error: "--url: must be the http:// or https:// address of the service",
  }),
  tenant: tenantId.describe("--tenant"),
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
      error: `must be the path of an executable program, or ${INTERNAL}`,
    })
    .optional(),
  allowForwarding: onOrOff,
  allowHttp: onOrOff,
});

/** The host's own name in the form that names of devices have. */
const usualName = (): string =>
  hostname()
    .toLowerCase()
    .replaceAll(/[^a-z0-9_-]/g, "-")
    .slice(0, 64);

function option(flags: string, about: string, variable: string, fallback?: string): Option {
  const made = new Option(flags, about).env(variable);
  return fallback === undefined ? made : made.default(fallback);
}

function runCommand(): Command {
  return new Command("run")
    .description("Enroll this machine as a device, and serve logins to it")
    .addOption(option("--url <url>", "Address of the service", "GATEHOUSE_URL").makeOptionMandatory())
    .addOption(
      option(
        "--tenant <id>",
        "Id of the namespace to enroll in",
        "GATEHOUSE_AGENT_TENANT",
      ).makeOptionMandatory(),
    )
    .addOption(option("--hostname <name>", "Name of a new device", "GATEHOUSE_AGENT_HOSTNAME", usualName()))
    .addOption(
      option(
        "--mac <address>",
        "What identifies the machine (default: its first network card)",
        "GATEHOUSE_AGENT_MAC",
      ),
    )
    .addOption(
      option(
        "--data-dir <folder>",
        "Folder of the device's key",
        "GATEHOUSE_AGENT_DATA_DIR",
        "gatehouse-agent-data",
      ),
    )
    .addOption(
      option(
        "--logins <names>",
        "Login names that get in, separated by commas; all of them as the user of this process; *: every name " +
          "(default: the name of that user)",
        "GATEHOUSE_AGENT_LOGINS",
      ),
    )
    .addOption(
      option(
        "--user <name>",
        "User to become when started as root, which serves no logins",
        "GATEHOUSE_AGENT_USER",
      ),
    )
    .addOption(
      option("--shell <path>", "Shell of logins (default: that of the user)", "GATEHOUSE_AGENT_SHELL"),
    )
    .addOption(
      option(
        "--sftp-server <path>",
        "Program that serves files over SFTP, or internal: the agent serves them itself (default: OpenSSH's " +
          "sftp-server where it is installed, else internal)",
        "GATEHOUSE_AGENT_SFTP_SERVER",
      ),
    )
    .addOption(
      option(
        "--allow-forwarding [on|off]",
        "Let logins reach other addresses through this machine",
        "GATEHOUSE_AGENT_ALLOW_FORWARDING",
        "off",
      ).preset("on"),
    )
    .addOption(
      option(
        "--allow-http [on|off]",
        "Use http:// to another machine: whoever is on the way reads the device's token and can log in",
        "GATEHOUSE_AGENT_ALLOW_HTTP",
        "off",
      ).preset("on"),
    )
    .addHelpText(
      "after",
      "\nWithout GATEHOUSE_AGENT_PASSWORD_HASH, which `gatehouse-agent hash-password` makes, no password gets in.",
    );
}

/**
 * Runs `gatehouse-agent` with the arguments that follow the command's name.
 * @returns the exit code: 0 after SIGINT or SIGTERM, 1 for a failure, 2 for wrong usage
 */
export async function main(args: readonly string[]): Promise<number> {
  const program = new Command("gatehouse-agent")
    .description("Agent of a device of the remote SSH access service")
    .version(version)
    .showHelpAfterError("(--help says more)");
  program.addCommand(runCommand().action(run));
  program
    .command("hash-password")
    .description("Read a password from the standard input, and print its hash")
    .action(async () => console.log(await hashPassword((await text(process.stdin)).replace(/\r?\n$/, ""))));
  for (const command of [program, ...program.commands]) command.exitOverride();
  // Writes of the console already ignore errors; Commander's would end the process with a stack trace.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
  try {
    await program.parseAsync(args, { from: "user" });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : wrongUsage;
    console.error(`gatehouse-agent: ${(error as Error).message}`);
    return error instanceof UsageError ? wrongUsage : 1;
  }
}

/** @throws UsageError naming each wrong setting */
function readSettings(flags: object): z.output<typeof settings> {
  const read = settings.safeParse(flags);
  if (read.success) return read.data;
  const flagOf = (name: PropertyKey | undefined) =>
    `--${String(name).replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  throw new UsageError(
    read.error.issues.map(({ path, message }) => `${flagOf(path[0])}: ${message}`).join("\n"),
  );
}

/**
 * Sends a request to this process, because the HTTP client loads its parser with the first answer. The agent's user
 * may not be allowed to read the folder that the package is in.
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

/** @throws UsageError the address is another machine's, and its scheme is `http` */
function refusePlainHttp(url: string): void {
  const { protocol, hostname: host } = new URL(url);
  if (protocol === "https:" || host === "localhost" || host === "[::1]" || /^127(\.\d+){3}$/.test(host))
    return;
  throw new UsageError(
    "--url: http:// to another machine is refused, because anyone on the way could log in to this device. " +
      "Use https://, or set --allow-http (GATEHOUSE_AGENT_ALLOW_HTTP=on)",
  );
}

async function run(flags: object): Promise<void> {
  const { user, dataDir, mac, logins, shell, sftpServer, allowHttp, ...rest } = readSettings(flags);
  if (!allowHttp) refusePlainHttp(rest.url);
  const passwordFits = passwordCheck(process.env.GATEHOUSE_AGENT_PASSWORD_HASH);
  checkUser(user);
  await loadHttpParser();
  // The agent reads the key before it gives up root's rights: users who log in must not be able to read it.
  const key = deviceKey(dataDir);
  const pin = new ServicePin(dataDir);
  const { username, home, shell: usualShell } = becomeUser(user);
  const agent = new Agent({
    ...rest,
    version: `v${version}`,
    key,
    pin,
    mac: mac ?? machineAddress(key),
    logins: logins ?? [username],
    user: { name: username, home, shell: shell ?? usualShell },
    sftpServer: sftpServer === INTERNAL ? undefined : (sftpServer ?? installedSftpServer()),
    passwordFits,
    log: (level, message, facts = {}) =>
      console.log(JSON.stringify({ level, time: Date.now(), ...facts, msg: message })),
  });
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => agent.stop());
  await agent.run();
}
