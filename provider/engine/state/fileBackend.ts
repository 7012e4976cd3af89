import { createHash, randomUUID } from "node:crypto";
import { existsSync, readFileSync, readlinkSync } from "node:fs";
import { copyFile, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { hostname, userInfo } from "node:os";
import { join } from "node:path";
import { parseJson } from "@gatehouse-access/sdk/json";
import { unsupportedUse } from "../engineDifferences.ts";
import { BackendError, LockedError, UnsupportedError } from "../errors.ts";
import {
  ifThere,
  isNoSuchFile,
  parseJsonFile,
  parseYamlMap,
  readIfThere,
  removeIfThere,
  syncFolder,
  writeDurably,
} from "../files.ts";
import type { StoredOperation, StoredResource } from "./crypter.ts";

/** The content of a state file, with secrets encrypted. */
export interface Checkpoint {
  readonly salt?: string;
  readonly resources: readonly StoredResource[];
  readonly pendingOperations: readonly StoredOperation[];
  readonly metadata: unknown;
  /** SHA-256 hash of the state file, which identifies the version of the state. */
  readonly hash: string;
}

export interface HistoryEntry {
  readonly kind: "update" | "refresh" | "destroy";
  /** Start of the run, as Unix time in seconds. `endTime` uses the same unit. */
  readonly startTime: number;
  readonly endTime: number;
  readonly result: "succeeded" | "failed";
  readonly config: Readonly<Record<string, unknown>>;
  readonly resourceChanges: Readonly<Record<string, number>>;
}

/** The files of one stack in a file:// backend, in the layout of the Pulumi CLI. */
export class FileBackend {
  readonly root: string;
  readonly project: string;
  readonly stack: string;

  constructor(folder: string, project: string, stack: string) {
    this.root = join(folder, ".pulumi");
    this.project = project;
    this.stack = stack;
  }

  get stateFile(): string {
    return join(this.root, "stacks", this.project, `${this.stack}.json`);
  }
  get journalFile(): string {
    return join(this.root, "stacks", this.project, `${this.stack}.gatehouse-journal`);
  }
  get lockFolder(): string {
    return join(this.root, "locks", "organization", this.project, this.stack);
  }

  /** Returns the stacks of a project in alphabetical order. */
  static async stacks(folder: string, project: string): Promise<string[]> {
    const files = (await ifThere(readdir(join(folder, ".pulumi", "stacks", project)))) ?? [];
    return files
      .filter((name) => name.endsWith(".json"))
      .map((name) => name.slice(0, -5))
      .sort();
  }

  /** Creates the directories and meta.yaml if they are missing. @throws the errors of {@link check} */
  async prepare(): Promise<void> {
    await this.check();
    const meta = this.#metaFile;
    if (!existsSync(meta)) {
      await mkdir(this.root, { recursive: true });
      await writeDurably(meta, "version: 1\n");
    }
    await mkdir(join(this.root, "stacks", this.project), { recursive: true });
  }

  get #metaFile(): string {
    return join(this.root, "meta.yaml");
  }

  /**
   * Checks the layout of the backend. Does not write anything.
   * @throws UnsupportedError if the backend has an old layout; BackendError if the backend has a newer layout
   */
  async check(): Promise<void> {
    const meta = this.#metaFile;
    const text = await ifThere(readFile(meta, "utf8"));
    if (text === undefined) await this.#refuseOldLayout();
    else {
      const { version } = parseYamlMap(text, meta);
      if (version === 0) throw new UnsupportedError([unsupportedUse("legacy-layout", meta)]);
      if (version !== 1)
        throw new BackendError(`${meta} has version ${String(version)}; only version 1 is supported.`);
    }
    for (const suffix of [".gz", ".zst"]) {
      if (existsSync(this.stateFile + suffix)) {
        throw new UnsupportedError([unsupportedUse("compressed-state", this.stateFile + suffix)]);
      }
    }
  }

  async #refuseOldLayout(): Promise<void> {
    const folder = join(this.root, "stacks");
    if (!existsSync(folder)) return;
    const old = (await readdir(folder)).find((name) => name.endsWith(".json"));
    if (old) throw new UnsupportedError([unsupportedUse("legacy-layout", join(folder, old))]);
  }

  /**
   * Reads the state. Returns undefined if the stack does not exist.
   * @throws BackendError if the state cannot be read; UnsupportedError if the secrets provider is not a passphrase
   */
  async read(): Promise<Checkpoint | undefined> {
    const text = await readIfThere(this.stateFile, BackendError);
    if (text === undefined) return undefined;
    const file = parseJsonFile(text, this.stateFile) as StoredCheckpoint;
    if (file.version !== 3 && file.version !== 4) {
      throw new BackendError(
        `${this.stateFile} has version ${file.version}; only versions 3 and 4 are supported.`,
      );
    }
    if (file.features && file.features.length > 0) {
      throw new BackendError(
        `${this.stateFile} uses ${file.features.join(", ")}, which the embedded engine does not support.`,
      );
    }
    const latest = file.checkpoint?.latest ?? {};
    const provider = latest.secrets_providers;
    if (provider && provider.type !== "passphrase") {
      throw new UnsupportedError([
        unsupportedUse("secrets-provider", `${this.stateFile} (${provider.type})`),
      ]);
    }
    return {
      ...(provider?.state?.salt && { salt: provider.state.salt }),
      resources: latest.resources ?? [],
      pendingOperations: latest.pending_operations ?? [],
      metadata: latest.metadata ?? {},
      hash: hashOf(text),
    };
  }

  render(checkpoint: Omit<Checkpoint, "hash">): { text: string; hash: string } {
    const latest: Record<string, unknown> = {
      manifest: { time: new Date().toISOString(), magic: "", version: "" },
      secrets_providers: { type: "passphrase", state: { salt: checkpoint.salt } },
    };
    if (checkpoint.resources.length > 0) latest.resources = checkpoint.resources;
    if (checkpoint.pendingOperations.length > 0) latest.pending_operations = checkpoint.pendingOperations;
    latest.metadata = checkpoint.metadata ?? {};
    const text = JSON.stringify({
      version: 3,
      checkpoint: { stack: `organization/${this.project}/${this.stack}`, latest },
    });
    return { text, hash: hashOf(text) };
  }

  /** Writes the state file. If there is enough disk space, keeps the previous file as `.bak`. */
  async write(text: string): Promise<void> {
    const former = `${this.stateFile}.bak`;
    await writeDurably(this.stateFile, text, async () => {
      if (existsSync(this.stateFile))
        await copyFile(this.stateFile, former).catch(() => removeIfThere(former));
    });
    // Removes the file in which the CLI stores the size and checksum of the state file. These values belong to the
    // previous state file.
    await removeIfThere(`${this.stateFile}.attrs`);
  }

  /** Adds a finished run to the history of the stack, and a copy of the state to the backups. */
  async record(entry: HistoryEntry): Promise<void> {
    const now = `${BigInt(Date.now()) * 1_000_000n + (process.hrtime.bigint() % 1_000_000n)}`;
    const history = join(this.root, "history", this.project, this.stack);
    const backups = join(this.root, "backups", this.project, this.stack);
    await mkdir(history, { recursive: true });
    await mkdir(backups, { recursive: true });
    const base = join(history, `${this.stack}-${now}`);
    const environment = { "exec.kind": "gatehouse.embedded" };
    const { kind, startTime, ...rest } = entry;
    const record = { kind, startTime, message: "", environment, ...rest, version: 0 };
    await writeFile(`${base}.history.json`, JSON.stringify(record));
    await copyFile(this.stateFile, `${base}.checkpoint.json`);
    await copyFile(this.stateFile, join(backups, `${this.stack}.${now}.json`));
  }
}

/** The state of a stack in the format of the state file and of `pulumi stack export`. */
export interface StoredDeployment {
  readonly secrets_providers?: { readonly type: string; readonly state?: { readonly salt?: string } };
  readonly resources?: readonly StoredResource[];
  readonly pending_operations?: readonly StoredOperation[];
  readonly metadata?: unknown;
}

interface StoredCheckpoint {
  readonly version: number;
  readonly features?: readonly string[];
  readonly checkpoint?: { readonly latest?: StoredDeployment };
}

const hashOf = (text: string) => createHash("sha256").update(text).digest("hex");

const PROGRAM = "gatehouse";

/** The identity of a process. Systems other than Linux provide only the process id. */
interface ProcessIdentity {
  readonly pid: number;
  /**
   * Start time of the process, in the format of the operating system. A later process may have the same process id, but
   * its start time is different.
   */
  readonly started?: string;
  /** Boot id of the machine. A process id is unique only until the next restart and within one PID namespace. */
  readonly boot?: string;
  readonly pidNamespace?: string;
}

/**
 * The content of a lock file. Lock files of other programs, such as the Pulumi CLI, identify the process only by its
 * process id.
 */
interface LockContent extends ProcessIdentity {
  readonly username: string;
  readonly hostname: string;
  readonly timestamp: string;
  /**
   * The value `gatehouse` in lock files of this program; undefined in lock files of other programs, such as the Pulumi
   * CLI.
   */
  readonly program?: string;
}

interface LockFile {
  readonly path: string;
  readonly content: LockContent;
  /** True if a `gatehouse` process on this machine created the lock and has ended. */
  readonly deadOwn: boolean;
  /**
   * True if a `gatehouse` process on a host with the same name created the lock, and this process cannot check whether
   * it is still running.
   */
  readonly hiddenOwn: boolean;
}

export async function findLocks(folder: string): Promise<LockFile[]> {
  const names = (await ifThere(readdir(folder))) ?? [];
  const found: LockFile[] = [];
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

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // Uses the user id if the user database does not contain the user, for example in containers.
    return `${process.getuid?.()}`;
  }
}

/**
 * Locks a stack. Ignores the locks of dead `gatehouse` processes. `removeLocks` removes these locks.
 * @throws LockedError if a different process holds the lock of the stack
 */
export async function takeLock(folder: string): Promise<{ release(): Promise<void> }> {
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

export async function removeLocks(locks: readonly LockFile[]): Promise<void> {
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
        ? "; cannot check whether the process is alive: it ran in another container, before a restart, or with an older release"
        : "";
      return `${path}: ${content.username}@${content.hostname} (pid ${content.pid}) since ${content.timestamp}${hidden}`;
    }),
  );
}

function ownIdentity(): ProcessIdentity {
  return {
    pid: process.pid,
    started: processStart(process.pid),
    boot: ifReadable(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()),
    pidNamespace: ifReadable(() => readlinkSync("/proc/self/ns/pid")),
  };
}

/**
 * Returns true if this process can check whether the other process is running, because both have the same boot id and
 * PID namespace. Returns false on Linux if these ids are unknown, since several containers can share a host name.
 */
function isVisible(other: ProcessIdentity): boolean {
  const { boot, pidNamespace } = ownIdentity();
  if (process.platform === "linux" && (boot === undefined || pidNamespace === undefined)) return false;
  return other.boot === boot && other.pidNamespace === pidNamespace;
}

/**
 * Returns true if the process has ended. In this case, no process has its process id, or a process with a different
 * start time has this process id.
 */
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
  const stat = ifReadable(() => readFileSync(`/proc/${pid}/stat`, "utf8"));
  // The command name in parentheses may contain spaces, so the line is split after the closing parenthesis. The start
  // time is the 20th field after the command name.
  return stat?.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
}

function ifReadable(read: () => string): string | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
