import { accessSync, constants, type Dirent, type Stats } from "node:fs";
import {
  chmod,
  type FileHandle,
  lstat,
  mkdir,
  open,
  readdir,
  readlink,
  realpath,
  rename,
  rmdir,
  stat,
  symlink,
  truncate,
  unlink,
  utimes,
} from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import ssh2, { type Attributes, type FileEntry, type SFTPWrapper } from "ssh2";

const { STATUS_CODE, OPEN_MODE } = ssh2.utils.sftp;

/** Files and folders that a client may have open. */
const HANDLES_MOST = 256;
/** Largest part of a file that is read at once, in bytes. */
const READ_MAX = 256 * 1024;
/** Entries of a folder in one answer. */
const ENTRIES = 100;

/** Where systems install OpenSSH's program that serves files: Debian, Alpine, Fedora, the BSDs, Arch, OpenWrt. */
const INSTALLED = [
  "/usr/lib/openssh/sftp-server",
  "/usr/lib/ssh/sftp-server",
  "/usr/libexec/openssh/sftp-server",
  "/usr/libexec/sftp-server",
  "/usr/lib/sftp-server",
];

/** Path of the device's own SFTP server; undefined: it has none. */
export const installedSftpServer = (): string | undefined => INSTALLED.find(isProgram);

/** Whether this process may run a file. */
export function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

type Open = { readonly file: FileHandle } | { readonly folder: string; readonly entries: Dirent[] };

/** SFTP's codes of the system's errors. */
const CODES: Readonly<Record<string, number>> = {
  ENOENT: STATUS_CODE.NO_SUCH_FILE,
  ENOTDIR: STATUS_CODE.NO_SUCH_FILE,
  EACCES: STATUS_CODE.PERMISSION_DENIED,
  EPERM: STATUS_CODE.PERMISSION_DENIED,
};

const attributesOf = ({ mode, uid, gid, size, atime, mtime }: Stats): Attributes => ({
  mode,
  uid,
  gid,
  size,
  atime: Math.floor(atime.getTime() / 1000),
  mtime: Math.floor(mtime.getTime() / 1000),
});

/** The system's flags for those of SFTP (version 3). */
function flagsOf(flags: number): number {
  const { READ, WRITE, APPEND, CREAT, TRUNC, EXCL } = OPEN_MODE;
  const has = (flag: number) => (flags & flag) !== 0;
  let mode: number = constants.O_RDONLY;
  if (has(WRITE)) mode = has(READ) ? constants.O_RDWR : constants.O_WRONLY;
  if (has(APPEND)) mode |= constants.O_APPEND;
  if (has(CREAT)) mode |= constants.O_CREAT;
  if (has(TRUNC)) mode |= constants.O_TRUNC;
  if (has(EXCL)) mode |= constants.O_EXCL;
  return mode;
}

class Refusal extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/** The part of the system's `ls -l` that clients show; they read nothing out of it. */
function longname(name: string, { mode, uid, gid, size, mtime }: Stats): string {
  const rights = [..."rwxrwxrwx"].map((right, bit) => ((mode >> (8 - bit)) & 1 ? right : "-")).join("");
  const kind =
    (mode & constants.S_IFMT) === constants.S_IFDIR
      ? "d"
      : (mode & constants.S_IFMT) === constants.S_IFLNK
        ? "l"
        : "-";
  const day = mtime.toISOString().slice(0, 16).replace("T", " ");
  return `${kind}${rights} 1 ${uid} ${gid} ${size} ${day} ${name}`;
}

async function setAttributes(
  target: {
    chmod(mode: number): Promise<void>;
    utimes(a: number, m: number): Promise<void>;
    truncate(size: number): Promise<void>;
  },
  { mode, atime, mtime, size }: Attributes,
): Promise<void> {
  if (size !== undefined) await target.truncate(size);
  if (mode !== undefined) await target.chmod(mode & 0o7777);
  if (atime !== undefined && mtime !== undefined) await target.utimes(atime, mtime);
}

const ofPath = (path: string) => ({
  chmod: (mode: number) => chmod(path, mode),
  utimes: (atime: number, mtime: number) => utimes(path, atime, mtime),
  truncate: (size: number) => truncate(path, size),
});

/**
 * Serves files to a client (SFTP version 3), with the rights of this process.
 * @param home where relative paths begin
 * @returns closes the files that are open, and later ones at once; for when the connection is gone
 */
export function serveSftp(sftp: SFTPWrapper, home: string): () => void {
  const handles = new Map<number, Open>();
  let last = 0;
  /** Files that are being opened. */
  let coming = 0;
  let isOver = false;
  const at = (path: string) => resolve(home, path);

  const keep = (opened: Open): Buffer => {
    last += 1;
    handles.set(last, opened);
    const handle = Buffer.alloc(4);
    handle.writeUInt32BE(last);
    return handle;
  };
  const opened = (handle: Buffer): Open => {
    const found = handle.length === 4 ? handles.get(handle.readUInt32BE()) : undefined;
    if (found === undefined) throw new Refusal(STATUS_CODE.FAILURE, "no such handle");
    return found;
  };
  const file = (handle: Buffer): FileHandle => {
    const found = opened(handle);
    if (!("file" in found)) throw new Refusal(STATUS_CODE.FAILURE, "the handle is that of a folder");
    return found.file;
  };
  /** Opens something if there is room for it. */
  const openNew = async (request: number, work: () => Promise<Open>) => {
    if (handles.size + coming >= HANDLES_MOST)
      throw new Refusal(STATUS_CODE.FAILURE, "too many files are open");
    coming += 1;
    try {
      const handle = keep(await work());
      if (isOver) closeAll();
      else sftp.handle(request, handle);
    } finally {
      coming -= 1;
    }
  };
  const closeAll = () => {
    isOver = true;
    for (const left of handles.values()) {
      // Nobody is left to hear of a failure.
      if ("file" in left) left.file.close().catch(() => {});
    }
    handles.clear();
  };
  const done = (request: number) => sftp.status(request, STATUS_CODE.OK);
  /** Settles once all requests so far are answered. */
  let answered: Promise<void> = Promise.resolve();
  /**
   * Processes a request after all earlier ones: scp and sftp cut a file off after the last write whose answer came in
   * order. The work answers a request that succeeds.
   */
  const answer = (request: number, work: () => Promise<unknown>) => {
    answered = answered.then(work).then(
      () => {},
      (error: NodeJS.ErrnoException) => {
        const code = error instanceof Refusal ? error.code : (CODES[error.code ?? ""] ?? STATUS_CODE.FAILURE);
        sftp.status(request, code, error.message);
      },
    );
  };

  sftp.on("OPEN", (request, path, flags, attributes) =>
    answer(request, async () => {
      const mode = (attributes.mode ?? 0o666) & 0o7777;
      await openNew(request, async () => ({ file: await open(at(path), flagsOf(flags), mode) }));
    }),
  );
  sftp.on("READ", (request, handle, offset, length) =>
    answer(request, async () => {
      const buffer = Buffer.allocUnsafe(Math.min(length, READ_MAX));
      const { bytesRead } = await file(handle).read(buffer, 0, buffer.length, offset);
      if (bytesRead === 0) sftp.status(request, STATUS_CODE.EOF);
      else sftp.data(request, buffer.subarray(0, bytesRead));
    }),
  );
  sftp.on("WRITE", (request, handle, offset, data) =>
    answer(request, async () => {
      for (let written = 0; written < data.length; ) {
        const { bytesWritten } = await file(handle).write(
          data,
          written,
          data.length - written,
          offset + written,
        );
        written += bytesWritten;
      }
      done(request);
    }),
  );
  sftp.on("CLOSE", (request, handle) =>
    answer(request, async () => {
      const closed = opened(handle);
      handles.delete(handle.readUInt32BE());
      if ("file" in closed) await closed.file.close();
      done(request);
    }),
  );
  sftp.on("FSTAT", (request, handle) =>
    answer(request, async () => sftp.attrs(request, attributesOf(await file(handle).stat()))),
  );
  sftp.on("FSETSTAT", (request, handle, attributes) =>
    answer(request, async () => {
      await setAttributes(file(handle), attributes);
      done(request);
    }),
  );
  sftp.on("STAT", (request, path) =>
    answer(request, async () => sftp.attrs(request, attributesOf(await stat(at(path))))),
  );
  sftp.on("LSTAT", (request, path) =>
    answer(request, async () => sftp.attrs(request, attributesOf(await lstat(at(path))))),
  );
  sftp.on("SETSTAT", (request, path, attributes) =>
    answer(request, async () => {
      await setAttributes(ofPath(at(path)), attributes);
      done(request);
    }),
  );
  sftp.on("OPENDIR", (request, path) =>
    answer(request, async () => {
      const folder = at(path);
      await openNew(request, async () => ({
        folder,
        entries: await readdir(folder, { withFileTypes: true }),
      }));
    }),
  );
  sftp.on("READDIR", (request, handle) =>
    answer(request, async () => {
      const found = opened(handle);
      if (!("folder" in found)) throw new Refusal(STATUS_CODE.FAILURE, "the handle is that of a file");
      const some = found.entries.splice(0, ENTRIES);
      const entries = await Promise.all(some.map(({ name }) => entryOf(join(found.folder, name))));
      const present = entries.filter((entry) => entry !== undefined);
      if (some.length === 0) sftp.status(request, STATUS_CODE.EOF);
      else sftp.name(request, present);
    }),
  );
  sftp.on("REALPATH", (request, path) =>
    answer(request, async () => {
      const asked = at(path);
      const filename = await realpath(asked).catch(() => asked);
      sftp.name(request, [{ filename, longname: filename, attrs: {} as Attributes }]);
    }),
  );
  sftp.on("READLINK", (request, path) =>
    answer(request, async () => {
      const filename = await readlink(at(path));
      sftp.name(request, [{ filename, longname: filename, attrs: {} as Attributes }]);
    }),
  );
  const change =
    (work: (...paths: string[]) => Promise<unknown>) =>
    (request: number, ...paths: unknown[]) =>
      answer(request, async () => {
        await work(...paths.filter((path) => typeof path === "string"));
        done(request);
      });
  sftp.on(
    "REMOVE",
    change((path = "") => unlink(at(path))),
  );
  sftp.on(
    "RMDIR",
    change((path = "") => rmdir(at(path))),
  );
  sftp.on("MKDIR", (request, path, attributes) =>
    answer(request, async () => {
      await mkdir(at(path), (attributes.mode ?? 0o777) & 0o7777);
      done(request);
    }),
  );
  // OpenSSH sends the link's target first.
  sftp.on(
    "SYMLINK",
    change((target = "", path = "") => symlink(target, at(path))),
  );
  sftp.on(
    "RENAME",
    change(async (from = "", to = "") => {
      const taken = await lstat(at(to)).then(
        () => true,
        () => false,
      );
      if (taken) throw new Refusal(STATUS_CODE.FAILURE, "there is a file of that name");
      await rename(at(from), at(to));
    }),
  );
  // The client sends no more requests, and waits for this side's end.
  sftp.on("end", () => void answered.then(() => sftp.end()));
  sftp.on("close", closeAll);
  return closeAll;
}

/** A folder's entry; undefined where it is gone. */
async function entryOf(path: string): Promise<FileEntry | undefined> {
  try {
    const stats = await lstat(path);
    const filename = basename(path);
    return { filename, longname: longname(filename, stats), attrs: attributesOf(stats) };
  } catch {
    return undefined;
  }
}
