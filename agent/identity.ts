import { execFileSync } from "node:child_process";
import { createPrivateKey, createPublicKey, generateKeyPairSync, hash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { networkInterfaces, type UserInfo, userInfo } from "node:os";
import { join } from "node:path";
import { fileFailureText } from "@gatehouse-access/sdk/errors";

/** An error in the command line. */
export class UsageError extends Error {}

/** The key pair that identifies a device to the service. */
export interface DeviceKey {
  /** The private key, PEM (PKCS#1). */
  readonly privateKey: string;
  /** The public key, PEM (PKCS#1). */
  readonly publicKey: string;
}

const KEY_FILE = "device_key.pem";

/** The numeric ids of a user. */
interface Ids {
  readonly uid: number;
  readonly gid: number;
  /** Ids of all groups of the user. */
  readonly groups: number[];
}

/**
 * Returns the ids of a user.
 * @throws UsageError the user does not exist
 */
function idsOf(user: string): Ids {
  try {
    const id = (what: string) =>
      execFileSync("id", [what, "--", user], {
        encoding: "utf8",
        stdio: ["ignore", "pipe", "ignore"],
      }).trim();
    return { uid: Number(id("-u")), gid: Number(id("-g")), groups: id("-G").split(" ").map(Number) };
  } catch {
    throw new UsageError(
      `--user: The user ${user} does not exist on this machine. Create the user, or set another one.`,
    );
  }
}

const isRoot = (): boolean => process.getuid?.() === 0;

/**
 * Returns the user of this process. In a container, a process may run with a user id that is not in the user database.
 * In this case, the user id is also the user name.
 */
function ownUser(): Pick<UserInfo<string>, "username" | "homedir" | "shell"> {
  try {
    return userInfo();
  } catch {
    return { username: `${process.getuid?.()}`, homedir: process.env.HOME || "/", shell: null };
  }
}

/**
 * Returns the ids of the unprivileged user that the process will switch to.
 * @throws UsageError no user is given, or the user is root
 */
function unprivileged(user: string | undefined): Ids {
  if (user === undefined) {
    throw new UsageError(
      "--user is not set, and root starts the agent. Add --user <name> (GATEHOUSE_AGENT_USER) with another user of this " +
        "machine. Logins run as this user.",
    );
  }
  const ids = idsOf(user);
  if (ids.uid === 0)
    throw new UsageError(
      "--user must not be root. Set it to another user of this machine. Logins run as this user.",
    );
  return ids;
}

/**
 * Checks the option `--user`. Call this function before the process reads or creates any file.
 * @throws UsageError root runs the process, and the option does not specify a different user
 */
export function checkUser(user: string | undefined): void {
  if (isRoot()) unprivileged(user);
}

/**
 * Switches permanently from root to the given user.
 * @returns the user of the process after the switch
 * @throws UsageError root runs the process, and no different user is given
 */
export function becomeUser(user: string | undefined): {
  readonly username: string;
  readonly home: string;
  readonly shell: string;
} {
  if (isRoot()) {
    const { uid, gid, groups } = unprivileged(user);
    process.setgroups?.(groups);
    process.setgid?.(gid);
    process.setuid?.(uid);
  } else if (user !== undefined && user !== ownUser().username) {
    throw new UsageError(
      `--user: Only root can switch to ${user}. Start the agent as root or as ${user}, or omit --user.`,
    );
  }
  const { username, homedir, shell } = ownUser();
  const usable = shell && existsSync(shell) && !/\/(nologin|false)$/.test(shell);
  return { username, home: existsSync(homedir) ? homedir : "/", shell: usable ? shell : "/bin/sh" };
}

/**
 * Returns the device's key. Creates the key at the first start. Only the user of the process can access the folder of
 * the key.
 * @throws Error the process cannot use the folder, or the file contains no key
 */
export function deviceKey(folder: string): DeviceKey {
  const file = join(folder, KEY_FILE);
  withFile("write", folder, () => mkdirSync(folder, { recursive: true, mode: 0o700 }));
  if (!withFile("read", folder, () => readdirSync(folder)).includes(KEY_FILE)) {
    const pem = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({
      type: "pkcs1",
      format: "pem",
    });
    withFile("write", file, () => writeFileSync(file, pem, { mode: 0o600, flag: "wx" }));
  }
  const privateKey = withFile("read", file, () => readFileSync(file, "utf8"));
  let publicKey: string;
  try {
    publicKey = createPublicKey(createPrivateKey(privateKey))
      .export({ type: "pkcs1", format: "pem" })
      .toString();
  } catch (cause) {
    // The message omits OpenSSL's error, since it does not help the user to fix the problem.
    throw new Error(
      `The file ${file} is not a private key in PEM form. Restore it, or delete it to enroll a new device.`,
      {
        cause,
      },
    );
  }
  return { privateKey, publicKey };
}

/** Accesses a file in the data folder. @throws Error with the cause and a remedy */
function withFile<T>(action: "read" | "write", file: string, access: () => T): T {
  try {
    return access();
  } catch (cause) {
    throw new Error(fileFailureText(action, `${file} (--data-dir)`, cause), { cause });
  }
}

/**
 * Returns the MAC address of the first network card. If the machine has no network card, derives the address from the
 * device's key.
 */
export function machineAddress({ publicKey }: DeviceKey): string {
  const cards = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  const card = cards.find(({ internal, mac }) => !internal && mac !== "00:00:00:00:00:00");
  if (card) return card.mac;
  return (hash("sha256", publicKey).slice(0, 10).match(/../g) ?? []).reduce(
    (mac, pair) => `${mac}:${pair}`,
    "02",
  );
}
