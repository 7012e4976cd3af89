import { spawn } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { freePort } from "./listening.ts";
import { isRoot } from "./nobody.ts";
import { newKey } from "./sshFleet.ts";

/** Path of OpenSSH's server program. */
export const SSHD = "/usr/sbin/sshd";

/** A running OpenSSH server, to which tests compare the gateway. */
interface Sshd {
  readonly port: number;
  /** The user that may log in: the user of this process. */
  readonly user: string;
  stop(): void;
}

/**
 * Starts OpenSSH's server for the user of this process.
 * @param folder new folder of the configuration and the host key
 * @param keys paths of the private keys that may log in
 * @returns undefined if the server is not installed
 */
export async function startSshd(folder: string, ...keys: readonly string[]): Promise<Sshd | undefined> {
  if (!existsSync(SSHD)) return undefined;
  // This directory must exist. Usually the system's service for sshd creates it.
  if (isRoot) mkdirSync("/run/sshd", { recursive: true, mode: 0o755 });
  const port = await freePort();
  const config = join(folder, "sshd_config");
  const settings = [
    `Port ${port}`,
    "ListenAddress 127.0.0.1",
    `HostKey ${newKey(folder, "sshd_host")}`,
    `AuthorizedKeysFile ${keys.map((key) => `${key}.pub`).join(" ")}`,
    "StrictModes no",
    "PermitRootLogin yes",
    "UsePAM no",
    "PidFile none",
    "MaxStartups 1000",
    "AcceptEnv LANG LC_* TZ COLORTERM",
    "Subsystem sftp internal-sftp",
  ];
  writeFileSync(config, `${settings.join("\n")}\n`);
  const child = spawn(SSHD, ["-D", "-e", "-f", config], { stdio: ["ignore", "ignore", "pipe"] });
  const output: string[] = [];
  for await (const line of createInterface({ input: child.stderr })) {
    output.push(line);
    if (line.startsWith("Server listening")) break;
  }
  if (!output.at(-1)?.startsWith("Server listening")) throw new Error(`sshd ended: ${output.join("\n")}`);
  child.stderr.resume();
  return { port, user: userInfo().username, stop: () => void child.kill() };
}
