import { randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { hostname, userInfo } from "node:os";
import { join } from "node:path";
import { LockedError } from "../errors.ts";
import { isDead, isVisible, ownIdentity, type ProcessIdentity } from "./deadProcess.ts";
import { isMissing, removeIfThere, syncFolder } from "./durableFile.ts";

const PROGRAM = "gatehouse";

/** The process is told by its id alone in locks of other programs. */
type LockContent = ProcessIdentity & {
  username: string;
  hostname: string;
  timestamp: string;
  /** Ours alone: who made it. */
  program?: string;
};

/** A lock somebody left or holds. `hiddenOwn`: a gatehouse process on a host of our name, which we cannot look for. */
export type FoundLock = { path: string; content: LockContent; deadOwn: boolean; hiddenOwn: boolean };

/** All locks of a stack; `deadOwn` where a gatehouse process on this machine left it and is gone. */
export async function findLocks(folder: string): Promise<FoundLock[]> {
  let names: string[];
  try {
    names = await readdir(folder);
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
  const found: FoundLock[] = [];
  for (const name of names.filter((entry) => entry.endsWith(".json"))) {
    const path = join(folder, name);
    let content: LockContent;
    try {
      content = JSON.parse(await readFile(path, "utf8")) as LockContent;
    } catch (error) {
      if (isMissing(error)) continue;
      content = { pid: 0, username: "unknown", hostname: "unknown", timestamp: "unknown" };
    }
    const own = content.program === PROGRAM && content.hostname === hostname();
    const visible = own && isVisible(content);
    found.push({ path, content, deadOwn: visible && isDead(content), hiddenOwn: own && !visible });
  }
  return found;
}

/** A lock we hold. */
export type HeldLock = { release(): Promise<void> };

/**
 * Takes the stack. Locks of our own dead processes do not hinder it; they stay until removed by `removeLocks`.
 * Throws LockedError where anybody else holds it.
 */
export async function takeLock(folder: string): Promise<HeldLock> {
  await refuseForeign(folder, undefined);
  await mkdir(folder, { recursive: true });
  const path = join(folder, `${randomUUID()}.json`);
  const content: LockContent = {
    ...ownIdentity(),
    username: userInfo().username,
    hostname: hostname(),
    timestamp: new Date().toISOString(),
    program: PROGRAM,
  };
  await writeFile(path, JSON.stringify(content), { flag: "wx" });
  await syncFolder(folder);
  try {
    await refuseForeign(folder, path);
  } catch (error) {
    await removeIfThere(path);
    throw error;
  }
  return { release: () => removeIfThere(path) };
}

/** Removes locks that dead processes of ours left. */
export async function removeLocks(locks: FoundLock[]): Promise<void> {
  for (const lock of locks) {
    await removeIfThere(lock.path);
    await removeIfThere(`${lock.path}.attrs`);
  }
}

async function refuseForeign(folder: string, own: string | undefined): Promise<void> {
  const foreign = (await findLocks(folder)).filter((lock) => lock.path !== own && !lock.deadOwn);
  if (foreign.length === 0) return;
  throw LockedError.heldBy(
    foreign.map(({ path, content, hiddenOwn }) => {
      const hidden = hiddenOwn
        ? "; whether it lives cannot be seen from here: it ran in another container, before a restart, or with an older release"
        : "";
      return `${path}: ${content.username}@${content.hostname} (pid ${content.pid}) since ${content.timestamp}${hidden}`;
    }),
  );
}
