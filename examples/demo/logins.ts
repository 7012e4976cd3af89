// The logins at the end of the demo. They use the OpenSSH client, the service, and the agent of a device.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Service } from "./service.ts";
import { type Child, startChild } from "./startChild.ts";

const AGENT = fileURLToPath(new URL("../../agent/bin/gatehouse-agent.js", import.meta.url));
const PROGRAM = fileURLToPath(new URL("../fleet-access", import.meta.url));
const PACKAGES = fileURLToPath(new URL("../../node_modules", import.meta.url));
/** The system user to which the agent switches if root runs the demo. */
const UNPRIVILEGED = "nobody";

/** The reason why the OpenSSH client cannot be used; undefined if the client works. */
export const withoutSsh: string | undefined = (() => {
  const { error, status, stderr } = spawnSync("ssh", ["-V"], { encoding: "utf8" });
  if (error) return "ssh is not on the PATH";
  return status === 0 ? undefined : `ssh failed with exit code ${status}: ${stderr.trim()}`;
})();

/**
 * Copies the program into the folder, and creates a new key for the contractor. So the demo writes nothing to the
 * repository, and several demos can run at the same time.
 * @returns the directory of the copy
 */
export function copyProgram(folder: string): string {
  const program = join(folder, "fleet-access");
  cpSync(PROGRAM, program, { recursive: true });
  symlinkSync(PACKAGES, join(program, "node_modules"), "junction");
  if (withoutSsh) return program;
  const pair = join(folder, "contractor");
  execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "contractor", "-f", pair]);
  cpSync(`${pair}.pub`, join(program, "keys", "contractor.pub"));
  return program;
}

/** Returns the arguments of the OpenSSH client for a login with the contractor's key. */
function loginFlags(folder: string, { sshPort }: Service, target: string): string[] {
  const options = ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "IdentitiesOnly=yes"];
  const quiet = ["LogLevel=ERROR", "BatchMode=yes", "IdentityAgent=none"];
  const flags = [...options, ...quiet].flatMap((option) => ["-o", option]);
  return ["-F", "none", ...flags, "-p", sshPort, "-i", join(folder, "contractor"), `${target}@127.0.0.1`];
}

/** Logs in with the contractor's key. Returns the output of the login or the error. */
export function logIn(folder: string, service: Service, target: string): string {
  const args = [...loginFlags(folder, service, target), "echo logged in on $GATEHOUSE_HOST"];
  const { stdout, stderr } = spawnSync("ssh", args, { encoding: "utf8" });
  return (stdout || stderr).trim();
}

/**
 * Logs in with the contractor's key, and waits until the session ends.
 * @param onOpen called when the session is open
 * @returns the last message of the session
 */
export async function holdSession(
  folder: string,
  service: Service,
  target: string,
  onOpen: () => void,
): Promise<string> {
  const args = [...loginFlags(folder, service, target), "echo open; exec cat"];
  const child = spawn("ssh", args, { stdio: ["pipe", "pipe", "pipe"] });
  child.stdout.once("data", onOpen);
  let message = "";
  child.stderr.on("data", (text) => {
    message += text;
  });
  await once(child, "close");
  return message.trim();
}

/** Changes the expiry time of the contractor's key in the copied program. */
export function setEnd(program: string, end: Date): void {
  const file = join(program, "index.ts");
  const text = readFileSync(file, "utf8");
  writeFileSync(file, text.replace("    expiresAt,\n", `    expiresAt: "${end.toISOString()}",\n`));
}

/**
 * Runs the agent of a device.
 * @throws ChildError with the agent's last lines if the agent does not open a tunnel
 */
export function startAgent(
  folder: string,
  { url }: Service,
  { tenant, name, mac }: { readonly tenant: string; readonly name: string; readonly mac: string },
): Promise<Child<true>> {
  const user = process.getuid?.() === 0 ? ["--user", UNPRIVILEGED] : [];
  const identity = ["--tenant", tenant, "--hostname", name, "--mac", mac];
  const dataDir = ["--data-dir", join(folder, "agent")];
  const logins = ["--logins", "*", "--shell", "/bin/sh"];
  return startChild([AGENT, "run", "--url", url, ...identity, ...dataDir, ...logins, ...user], {
    name: `The agent of ${name}`,
    ready: (line) => line.includes('"tunnel open"') || undefined,
  });
}
