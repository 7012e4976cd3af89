import { execFileSync } from "node:child_process";
import { createPrivateKey, createPublicKey, generateKeyPairSync, hash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { networkInterfaces, type UserInfo, userInfo } from "node:os";
import { join } from "node:path";

/** The command is called wrongly. */
export class UsageError extends Error {}

/** The key of a device, by which the service recognizes it. */
export interface DeviceKey {
  /** The private half, PEM (PKCS#1). */
  readonly privateKey: string;
  /** The public half, PEM (PKCS#1). */
  readonly publicKey: string;
}

const KEY_FILE = "device_key.pem";

/** What the system knows a user by. */
interface Ids {
  readonly uid: number;
  readonly gid: number;
  /** All groups of the user. */
  readonly groups: number[];
}

/** @throws UsageError there is no such user */
function idsOf(user: string): Ids {
  try {
    const id = (what: string) =>
      execFileSync("id", [what, "--", user], {
        encoding: "utf8",
        stdio: ["ignore", "pipe", "ignore"],
      }).trim();
    return { uid: Number(id("-u")), gid: Number(id("-g")), groups: id("-G").split(" ").map(Number) };
  } catch {
    throw new UsageError(`--user: there is no user ${user} on this machine`);
  }
}

const isRoot = (): boolean => process.getuid?.() === 0;

/** The user of this process. Containers run processes under ids without an entry among the system's users. */
function ownUser(): Pick<UserInfo<string>, "username" | "homedir" | "shell"> {
  try {
    return userInfo();
  } catch {
    return { username: `${process.getuid?.()}`, homedir: process.env.HOME || "/", shell: null };
  }
}

/** @throws UsageError no user, or root, is named */
function unprivileged(user: string | undefined): Ids {
  if (user === undefined) throw new UsageError("--user: must name the user to become, since this is root");
  const ids = idsOf(user);
  if (ids.uid === 0) throw new UsageError("--user: must not be root");
  return ids;
}

/**
 * To be called before anything is read or made.
 * @throws UsageError the process is root's, and no other user is named
 */
export function checkUser(user: string | undefined): void {
  if (isRoot()) unprivileged(user);
}

/**
 * Gives up root's rights for those of a user, for good.
 * @returns the user of the process from then on
 * @throws UsageError the process is root's, and no other user is named
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
    throw new UsageError(`--user: only root can become ${user}`);
  }
  const { username, homedir, shell } = ownUser();
  const usable = shell && existsSync(shell) && !/\/(nologin|false)$/.test(shell);
  return { username, home: existsSync(homedir) ? homedir : "/", shell: usable ? shell : "/bin/sh" };
}

/**
 * The device's key, which the first start makes, and its folder, which is for the process's user alone.
 * @throws Error the process may not use the folder, or the file holds no key
 */
export function deviceKey(folder: string): DeviceKey {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = join(folder, KEY_FILE);
  if (!existsSync(file)) {
    const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    writeFileSync(file, privateKey.export({ type: "pkcs1", format: "pem" }), { mode: 0o600, flag: "wx" });
  }
  const privateKey = readFileSync(file, "utf8");
  const publicKey = createPublicKey(createPrivateKey(privateKey)).export({ type: "pkcs1", format: "pem" });
  return { privateKey, publicKey: publicKey.toString() };
}

/** The address of the first network card; a machine without one is identified by its key. */
export function machineAddress({ publicKey }: DeviceKey): string {
  const cards = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  const card = cards.find(({ internal, mac }) => !internal && mac !== "00:00:00:00:00:00");
  if (card) return card.mac;
  return (hash("sha256", publicKey).slice(0, 10).match(/../g) ?? []).reduce(
    (mac, pair) => `${mac}:${pair}`,
    "02",
  );
}
