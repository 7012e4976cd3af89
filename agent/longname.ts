import { constants, type Stats } from "node:fs";
import { readFile } from "node:fs/promises";
import { DAY } from "@gatehouse-access/sdk/times";

/**
 * Returns the names of users or groups, by their ids, from a file like /etc/passwd. Returns an empty map if the file
 * cannot be read.
 */
async function namesIn(file: string): Promise<ReadonlyMap<number, string>> {
  const lines = (await readFile(file, "utf8").catch(() => "")).split("\n").map((line) => line.split(":"));
  return new Map(lines.map(([name = "", , id]) => [Number(id), name]));
}

/** Names of users and groups by their ids, for directory listings. */
export interface Names {
  readonly users: ReadonlyMap<number, string>;
  readonly groups: ReadonlyMap<number, string>;
}

/** Reads the names of the system's users and groups. Directory services such as LDAP are not queried. */
export async function systemNames(): Promise<Names> {
  const [users, groups] = await Promise.all([namesIn("/etc/passwd"), namesIn("/etc/group")]);
  return { users, groups };
}

const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
const KINDS = new Map<number, string>([
  [constants.S_IFDIR, "d"],
  [constants.S_IFLNK, "l"],
  [constants.S_IFBLK, "b"],
  [constants.S_IFCHR, "c"],
  [constants.S_IFIFO, "p"],
  [constants.S_IFSOCK, "s"],
]);
/** Age of a file, in milliseconds, from which a listing shows the year of the file instead of the time of day. */
const HALF_A_YEAR = (365 / 2) * DAY;

/** Formats a directory entry like a line of `ls -l`. SFTP clients show this line to their users. */
export function longname(name: Buffer, { mode, nlink, uid, gid, size, mtime }: Stats, names: Names): Buffer {
  const permissions = [..."rwxrwxrwx"].map((permission, bit) => ((mode >> (8 - bit)) & 1 ? permission : "-"));
  for (const [at, bit, set] of [
    [2, 0o4000, "s"],
    [5, 0o2000, "s"],
    [8, 0o1000, "t"],
  ] as const) {
    if (mode & bit) permissions[at] = permissions[at] === "x" ? set : set.toUpperCase();
  }
  const time = [mtime.getHours(), mtime.getMinutes()].map((part) => String(part).padStart(2, "0")).join(":");
  const age = Date.now() - mtime.getTime();
  const date = [
    MONTHS[mtime.getMonth()],
    String(mtime.getDate()).padStart(2),
    age >= 0 && age < HALF_A_YEAR ? time : String(mtime.getFullYear()).padStart(5),
  ];
  const columns = [
    `${KINDS.get(mode & constants.S_IFMT) ?? "-"}${permissions.join("")}`,
    String(nlink).padStart(3),
    (names.users.get(uid) ?? String(uid)).padEnd(8),
    (names.groups.get(gid) ?? String(gid)).padEnd(8),
    String(size).padStart(8),
    ...date,
  ];
  return Buffer.concat([Buffer.from(`${columns.join(" ")} `), name]);
}
