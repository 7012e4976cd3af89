// The logins at the end of the demo: OpenSSH's own client, the service, and an agent of a device.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Service } from "./service.ts";

const AGENT = fileURLToPath(new URL("../../agent/bin/gatehouse-agent.js", import.meta.url));
const KEYS = fileURLToPath(new URL("../fleet-access/keys", import.meta.url));
/** Whom the agent serves logins as, where the demo is root's. */
const UNPRIVILEGED = "nobody";

/** Whether OpenSSH's client is on the PATH. */
export const hasSsh = (): boolean => spawnSync("ssh", ["-V"], { stdio: "ignore" }).error === undefined;

/**
 * Copies the keys that the program declares, with a new one for the contractor, whose private half stays there.
 * @returns the folder
 */
export function copyKeys(folder: string): string {
  const keys = join(folder, "keys");
  cpSync(KEYS, keys, { recursive: true });
  if (!hasSsh()) return keys;
  const pair = join(folder, "contractor");
  execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "contractor", "-f", pair]);
  cpSync(`${pair}.pub`, join(keys, "contractor.pub"));
  return keys;
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

/** Runs the agent of a device until it is stopped; resolves once it has its tunnel. */
export async function startAgent(
  folder: string,
  { url }: Service,
  device: { readonly tenant: string; readonly name: string; readonly mac: string },
): Promise<{ stop(): Promise<void> }> {
  const { tenant, name, mac } = device;
  const user = process.getuid?.() === 0 ? ["--user", UNPRIVILEGED] : [];
  const identity = [
    "--tenant",
    tenant,
    "--hostname",
    name,
    "--mac",
    mac,
    "--data-dir",
    join(folder, "agent"),
  ];
  const args = ["run", "--url", url, ...identity, "--logins", "*", "--shell", "/bin/sh", ...user];
  const child = spawn(process.execPath, [AGENT, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  let ready = false;
  for await (const line of createInterface({ input: child.stdout })) {
    ready = line.includes('"tunnel open"');
    if (ready) break;
  }
  if (!ready) throw new Error("the agent did not start");
  child.stdout.resume();
  return {
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGTERM");
      await once(child, "exit");
    },
  };
}
