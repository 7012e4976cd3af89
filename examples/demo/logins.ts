// The logins at the end of the demo: OpenSSH's own client, the service, and an agent of a device.
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Service } from "./service.ts";
import { type Child, startChild } from "./startChild.ts";

const AGENT = fileURLToPath(new URL("../../agent/bin/gatehouse-agent.js", import.meta.url));
const PROGRAM = fileURLToPath(new URL("../fleet-access", import.meta.url));
const PACKAGES = fileURLToPath(new URL("../../node_modules", import.meta.url));
/** Whom the agent serves logins as, where the demo is root's. */
const UNPRIVILEGED = "nobody";

/** Why OpenSSH's client cannot be used; undefined where it can. */
export const withoutSsh: string | undefined = (() => {
  const { error, status, stderr } = spawnSync("ssh", ["-V"], { encoding: "utf8" });
  if (error) return "there is no ssh on the PATH";
  return status === 0 ? undefined : `ssh ended with exit code ${status}: ${stderr.trim()}`;
})();

/**
 * Copies the program with a new key for the contractor, whose private key stays in the folder. A run of the demo then
 * writes nothing into the repository, and several can run at once.
 * @returns the copy's folder
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

/** Logs in with the contractor's key; what came of it in a line. */
export function logIn(folder: string, { sshPort }: Service, target: string): string {
  const options = ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "IdentitiesOnly=yes"];
  const quiet = ["LogLevel=ERROR", "BatchMode=yes", "IdentityAgent=none"];
  const flags = [...options, ...quiet].flatMap((option) => ["-o", option]);
  const args = [
    "-F",
    "none",
    ...flags,
    "-p",
    sshPort,
    "-i",
    join(folder, "contractor"),
    `${target}@127.0.0.1`,
  ];
  const { stdout, stderr } = spawnSync("ssh", [...args, "echo logged in on $GATEHOUSE_HOST"], {
    encoding: "utf8",
  });
  return (stdout || stderr).trim();
}

/** Runs the agent of a device. @throws ChildError with the agent's last lines when it opens no tunnel */
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
