import { randomUUID } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { hostname, userInfo } from "node:os";
import { join } from "node:path";
import { parseJson } from "@gatehouse-access/sdk/json";
import { LockedError } from "../errors.ts";
import { isNoSuchFile, removeIfThere, syncFolder } from "../files.ts";

const PROGRAM = "gatehouse";

/** What tells a process from all others, as far as the system says it. */
interface ProcessIdentity {
  readonly pid: number;
  /** When it was started, as the system counts it: a later process may have the same id. */
  readonly started?: string;
  /** The boot of the machine, and the PID namespace: elsewhere the same id means another process. */
  readonly boot?: string;
  readonly pidNamespace?: string;
}

/** What a lock file holds. Those of other programs tell of the process its id alone. */
interface LockContent extends ProcessIdentity {
  readonly username: string;
  readonly hostname: string;
  readonly timestamp: string;
  /** The program that made the lock; other programs leave it out. */
  readonly program?: string;
}

export interface FoundLock {
  readonly path: string;
  readonly content: LockContent;
  /** True where a gatehouse process of this machine left it, and is gone. */
  readonly deadOwn: boolean;
  /** True for one of a gatehouse process that cannot be looked for from here, on a host of the same name. */
  readonly hiddenOwn: boolean;
}

export interface HeldLock {
  release(): Promise<void>;
}

export async function findLocks(folder: string): Promise<FoundLock[]> {
  let names: string[];
  try {
    names = await readdir(folder);
  } catch (error) {
    if (isNoSuchFile(error)) return [];
    throw error;
  }
  const found: FoundLock[] = [];
  for (const name of names.filter((entry) => entry.endsWith(".json"))) {
    const path = join(folder, name);
    let content: LockContent;
    try {
      content = parseJson(await readFile(path, "utf8")) as LockContent;
    } catch (error) {
      if (isNoSuchFile(error)) continue;
      content = { pid: 0, username: "unknown", hostname: "unknown", timestamp: "unknown" };
    }
    const own = content.program === PROGRAM && content.hostname === hostname();
    const visible = own && isVisible(content);
    found.push({ path, content, deadOwn: visible && isDead(content), hiddenOwn: own && !visible });
  }
  return found;
}

/** Name of the process's user. Containers run processes under ids without an entry among the system's users. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `${process.getuid?.()}`;
  }
}

/**
 * Locks a stack. Locks of dead gatehouse processes do not stand in the way; they stay until `removeLocks`.
 * @throws LockedError where anybody else holds the stack
 */
export async function takeLock(folder: string): Promise<HeldLock> {
  await refuseForeign(folder, undefined);
  await mkdir(folder, { recursive: true });
  const path = join(folder, `${randomUUID()}.json`);
  const content: LockContent = {
    ...ownIdentity(),
    username: userName(),
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

export async function removeLocks(locks: readonly FoundLock[]): Promise<void> {
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

/** This process. Systems other than Linux tell its id alone. */
function ownIdentity(): ProcessIdentity {
  return {
    pid: process.pid,
    started: processStart(process.pid),
    boot: told(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()),
    pidNamespace: told(() => readlinkSync("/proc/self/ns/pid")),
  };
}

/**
 * True where the id of a process of this host means the same process here. On Linux containers may share a host's name,
 * so a process that does not say where it ran is taken to be elsewhere.
 */
function isVisible(other: ProcessIdentity): boolean {
  const { boot, pidNamespace } = ownIdentity();
  if (process.platform === "linux" && (boot === undefined || pidNamespace === undefined)) return false;
  return other.boot === boot && other.pidNamespace === pidNamespace;
}

/** True where no process has this id, or the one that has it was started at another time. */
function isDead({ pid, started }: ProcessIdentity): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ESRCH") return true;
  }
  const now = processStart(pid);
  return started !== undefined && now !== undefined && started !== now;
}

function processStart(pid: number): string | undefined {
  const stat = told(() => readFileSync(`/proc/${pid}/stat`, "utf8"));
  // The command's name, in brackets, may hold spaces; what follows is regular, the start time its 20th field.
  return stat?.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
}

function told(read: () => string): string | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
