import { spawn } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { newKey } from "../../test/support/sshFleet.ts";

const SSHD = "/usr/sbin/sshd";

/** An SSH server that a user would have in place of the gateway. */
export interface Sshd {
  readonly port: number;
  /** Who may log in. */
  readonly user: string;
  stop(): void;
}

/** A free port of this machine. */
const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });

/**
 * Starts OpenSSH's server for the user of this process.
 * @param key path of the key that gets in
 * @returns undefined where there is none
 */
export async function startSshd(folder: string, key: string): Promise<Sshd | undefined> {
  if (!existsSync(SSHD)) return undefined;
  const port = await freePort();
  const config = join(folder, "sshd_config");
  const lines = [
    ...[`Port ${port}`, "ListenAddress 127.0.0.1", `HostKey ${newKey(folder, "sshd_host")}`],
    ...[`AuthorizedKeysFile ${key}.pub`, "StrictModes no", "PermitRootLogin yes", "UsePAM no"],
    ...["PidFile none", "MaxStartups 1000", "Subsystem sftp internal-sftp"],
  ];
  writeFileSync(config, `${lines.join("\n")}\n`);
  const child = spawn(SSHD, ["-D", "-e", "-f", config], { stdio: "ignore" });
  return { port, user: process.env.USER ?? "root", stop: () => void child.kill() };
}
