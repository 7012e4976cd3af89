import { once } from "node:events";
import { accessSync, constants, type Dir, type Stats } from "node:fs";
import {
  chmod,
  chown,
  type FileHandle,
  lchown,
  link,
  lstat,
  lutimes,
  mkdir,
  open,
  opendir,
  readlink,
  realpath,
  rename,
  rmdir,
  stat,
  statfs,
  symlink,
  truncate,
  unlink,
  utimes,
} from "node:fs/promises";
import type { Duplex } from "node:stream";
import { longname, type Names, systemNames } from "./longname.ts";
import {
  type Answer,
  type Attributes,
  attributeFields,
  encode,
  encodeNumber,
  type Field,
  PACKET_MAX,
  type Packet,
  ProtocolError,
  packetsOf,
  TYPE,
} from "./sftpPackets.ts";

/** Paths of OpenSSH's SFTP server program on Debian, Alpine, Fedora, the BSDs, Arch and OpenWrt. */
const INSTALLED = [
  "/usr/lib/openssh/sftp-server",
  "/usr/lib/ssh/sftp-server",
  "/usr/libexec/openssh/sftp-server",
  "/usr/libexec/sftp-server",
  "/usr/lib/sftp-server",
];

/** Returns the path of the device's own SFTP server program; undefined if it is not installed. */
export const installedSftpServer = (): string | undefined => INSTALLED.find(isProgram);

/** Returns true if this process may execute a file. */
export function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Maximum number of bytes of file data in one response. */
const READ_MAX = PACKET_MAX - 1024;
/** Number of bytes before the data in a DATA response: length, type, request id, length of the data. */
const DATA_HEADER = 13;
/** Maximum number of files and folders that a client may have open. */
const HANDLES_MOST = 256;
/** Maximum number of folder entries in one response. */
const ENTRIES = 100;

const STATUS = {
  OK: 0,
  EOF: 1,
  NO_SUCH_FILE: 2,
  PERMISSION_DENIED: 3,
  FAILURE: 4,
  BAD_MESSAGE: 5,
  UNSUPPORTED: 8,
} as const;

/** SFTP status codes by the system's error codes, as in OpenSSH. All other error codes become FAILURE. */
const CODES: Readonly<Record<string, number>> = {
  ENOENT: STATUS.NO_SUCH_FILE,
  ENOTDIR: STATUS.NO_SUCH_FILE,
  EBADF: STATUS.NO_SUCH_FILE,
  ELOOP: STATUS.NO_SUCH_FILE,
  EACCES: STATUS.PERMISSION_DENIED,
  EPERM: STATUS.PERMISSION_DENIED,
  EFAULT: STATUS.PERMISSION_DENIED,
  ENOSYS: STATUS.UNSUPPORTED,
  ENAMETOOLONG: STATUS.BAD_MESSAGE,
  EINVAL: STATUS.BAD_MESSAGE,
};

/** The supported extensions of OpenSSH, and their versions. */
const EXTENSIONS = {
  "posix-rename@openssh.com": "1",
  "statvfs@openssh.com": "2",
  "fstatvfs@openssh.com": "2",
  "hardlink@openssh.com": "1",
  "fsync@openssh.com": "1",
  "lsetstat@openssh.com": "1",
  "limits@openssh.com": "1",
  "copy-data": "1",
} as const;

/** Flags of an SFTP request that opens a file (draft-ietf-secsh-filexfer-02, section 6.3). */
const OPEN = { READ: 1, WRITE: 2, APPEND: 4, CREATE: 8, TRUNCATE: 16, EXCLUSIVE: 32 } as const;

/**
 * An open file or an open folder. A folder listing contains the names in `rest` (`.` and `..`) first, and then the
 * entries of `folder`.
 */
type Opened = { readonly path: Buffer } & (
  | { readonly file: FileHandle }
  | { readonly folder: Dir; readonly rest: Buffer[] }
);

/** An error that the server sends to the client as an SFTP status other than OK. */
class Rejection extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/** Converts the flags of an open request to the system's flags. */
function systemFlags(flags: number): number {
  const has = (flag: number) => (flags & flag) !== 0;
  // O_NONBLOCK is required for named pipes. Without it, opening a named pipe would block a thread of this process until
  // a different program opens the pipe.
  let result: number = constants.O_RDONLY | constants.O_NONBLOCK;
  if (has(OPEN.WRITE)) result |= has(OPEN.READ) ? constants.O_RDWR : constants.O_WRONLY;
  if (has(OPEN.APPEND)) result |= constants.O_APPEND;
  if (has(OPEN.CREATE)) result |= constants.O_CREAT;
  if (has(OPEN.TRUNCATE)) result |= constants.O_TRUNC;
  if (has(OPEN.EXCLUSIVE)) result |= constants.O_EXCL;
  return result;
}

/** The functions that set attributes of a file. */
interface Changes {
  truncate(size: number): Promise<void>;
  chmod(mode: number): Promise<void>;
  utimes(accessed: number, modified: number): Promise<void>;
  chown(uid: number, gid: number): Promise<void>;
}

async function setAttributes(of: Changes, { size, mode, times, owner }: Attributes): Promise<void> {
  if (size !== undefined) await of.truncate(size);
  if (mode !== undefined) await of.chmod(mode);
  if (times !== undefined) await of.utimes(times.accessed, times.modified);
  if (owner !== undefined) await of.chown(owner.uid, owner.gid);
}

const changesOf = (path: Buffer): Changes => ({
  truncate: (size) => truncate(path, size),
  chmod: (mode) => chmod(path, mode),
  utimes: (accessed, modified) => utimes(path, accessed, modified),
  chown: (uid, gid) => chown(path, uid, gid),
});

const unsupported = async () => {
  throw new Rejection(STATUS.UNSUPPORTED, "cannot set the size or mode of a symbolic link");
};

/** Returns functions that set attributes of a symbolic link instead of the attributes of its target. */
const linkChangesOf = (path: Buffer): Changes => ({
  truncate: unsupported,
  chmod: async (mode) => ((await lstat(path)).isSymbolicLink() ? unsupported() : chmod(path, mode)),
  utimes: (accessed, modified) => lutimes(path, accessed, modified),
  chown: (uid, gid) => lchown(path, uid, gid),
});

const SLASH = Buffer.from("/");

const child = (folder: Buffer, name: Buffer): Buffer => Buffer.concat([folder, SLASH, name]);

/** Splits a path into its parent folder and its last name. */
function parentOf(path: Buffer): { readonly parent: Buffer; readonly name: Buffer } {
  const slash = path.lastIndexOf(SLASH);
  return { parent: slash <= 0 ? SLASH : path.subarray(0, slash), name: path.subarray(slash + 1) };
}

const exists = (path: Buffer): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  );

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? "";

/**
 * Error codes of link(2) if the file system cannot create the hard link, or if the user may not create a link to the
 * file.
 */
const NO_LINKS = new Set(["EPERM", "ENOSYS", "ENOTSUP", "EOPNOTSUPP", "EXDEV", "EMLINK"]);

/** Renames a file without overwriting an existing file. */
async function renameToNew(from: Buffer, to: Buffer): Promise<void> {
  if ((await lstat(from)).isFile()) {
    try {
      // A hard link cannot overwrite a file that a different program creates at the same time. A check followed by a
      // rename could overwrite it.
      await link(from, to);
      await unlink(from).catch(async (error: unknown) => {
        await unlink(to);
        throw error;
      });
      return;
    } catch (error) {
      if (!NO_LINKS.has(codeOf(error))) throw error;
    }
  }
  if (await exists(to)) throw new Rejection(STATUS.FAILURE, "a file with that name already exists");
  await rename(from, to);
}

/**
 * Returns the absolute path without symbolic links, like realpath(3) in OpenSSH. The last component of the path may be
 * missing in the file system.
 */
async function canonical(path: Buffer): Promise<Buffer> {
  const resolved = (of: Buffer) => realpath(of, { encoding: "buffer" });
  try {
    return await resolved(path);
  } catch (error) {
    const { parent, name } = parentOf(path);
    if (codeOf(error) !== "ENOENT" || name.length === 0) throw error;
    const folder = await resolved(parent);
    return folder.equals(SLASH) ? child(Buffer.of(), name) : child(folder, name);
  }
}

/**
 * An SFTP server for one client, with the permissions of this process. Supports SFTP version 3 and extensions of
 * OpenSSH. File names are bytes. The server processes one request after another, and so acknowledges writes in order.
 * After an interruption, scp and sftp truncate the file after the last acknowledged write.
 */
export class FileServer {
  readonly #stream: Duplex;
  readonly #home: Buffer;
  readonly #opened = new Map<number, Opened>();
  #lastHandle = 0;
  #isClosed = false;
  readonly #closed = Promise.withResolvers<void>();
  #names: Promise<Names> | undefined;

  /** @param home the base folder of relative paths */
  constructor(stream: Duplex, home: string) {
    this.#stream = stream;
    this.#home = Buffer.from(home);
  }

  /** Processes requests until the client ends its input. @throws Error the client violates the protocol */
  async serve(): Promise<void> {
    try {
      // If the connection fails, the stream may emit neither "end" nor "drain". In this case, `close` ends the wait.
      await Promise.race([this.#processAll(), this.#closed.promise]);
    } finally {
      this.close();
    }
  }

  async #processAll(): Promise<void> {
    for await (const packet of packetsOf(this.#stream.iterator({ destroyOnReturn: false }))) {
      const answer = await this.#answer(packet);
      if (this.#isClosed) return;
      if (!this.#stream.write(answer)) await once(this.#stream, "drain");
    }
  }

  /** Closes all files, because the client has disconnected. */
  close(): void {
    this.#isClosed = true;
    this.#closed.resolve();
    for (const handle of this.#opened.keys()) {
      // The client has disconnected, so errors are ignored.
      this.#close(handle).catch(() => {});
    }
  }

  async #answer(packet: Packet): Promise<Buffer> {
    if (packet.type === TYPE.INIT) {
      const extensions = Object.entries(EXTENSIONS)
        .flat()
        .map((text) => Buffer.from(text));
      return encode({ type: TYPE.VERSION, fields: [3, ...extensions] });
    }
    const id = packet.number();
    const respond = (type: number, ...fields: readonly Field[]) => encode({ type, fields: [id, ...fields] });
    const status = (code: number, message: string) =>
      respond(TYPE.STATUS, code, Buffer.from(message), Buffer.from("en"));
    try {
      if (packet.type === TYPE.READ) return await this.#read(id, packet);
      const answer = await this.#process(packet);
      return answer === undefined ? status(STATUS.OK, "done") : respond(answer.type, ...answer.fields);
    } catch (error) {
      if (error instanceof ProtocolError) throw error;
      const code = error instanceof Rejection ? error.code : (CODES[codeOf(error)] ?? STATUS.FAILURE);
      return status(code, (error as Error).message);
    }
  }

  /**
   * Processes all requests except READ.
   * @returns the response, or undefined if the response is only the status OK
   * @throws Rejection if the response is a different status
   */
  async #process(packet: Packet): Promise<Answer | undefined> {
    const path = () => this.#path(packet.string());
    switch (packet.type) {
      case TYPE.OPEN:
        return this.#openFile(path(), packet.number(), packet.attributes());
      case TYPE.OPENDIR:
        return this.#openFolder(path());
      case TYPE.CLOSE: {
        const handle = packet.string();
        this.#find(handle);
        return done(this.#close(handle.readUInt32BE()));
      }
      case TYPE.WRITE:
        return done(writeAll(this.#file(packet.string()), packet.long(), packet.string()));
      case TYPE.READDIR:
        return this.#list(packet.string());
      case TYPE.STAT:
        return attributesAnswer(await stat(path()));
      case TYPE.LSTAT:
        return attributesAnswer(await lstat(path()));
      case TYPE.FSTAT:
        return attributesAnswer(await this.#file(packet.string()).stat());
      case TYPE.SETSTAT:
        return done(setAttributes(changesOf(path()), packet.attributes()));
      case TYPE.FSETSTAT:
        return done(setAttributes(this.#file(packet.string()), packet.attributes()));
      case TYPE.REMOVE:
        return done(unlink(path()));
      case TYPE.RMDIR:
        return done(rmdir(path()));
      case TYPE.MKDIR:
        return done(mkdir(path(), packet.attributes().mode ?? 0o777));
      case TYPE.REALPATH:
        return nameAnswer(await canonical(path()));
      case TYPE.READLINK:
        return nameAnswer(await readlink(path(), { encoding: "buffer" }));
      case TYPE.SYMLINK:
        // OpenSSH and all other clients send the link's target first. This order differs from the draft.
        return done(symlink(packet.string(), path()));
      case TYPE.RENAME:
        return done(renameToNew(path(), path()));
      case TYPE.EXTENDED:
        return this.#extended(packet.string().toString("latin1"), packet);
      default:
        throw new Rejection(STATUS.UNSUPPORTED, `request type ${packet.type} is not supported`);
    }
  }

  async #extended(name: string, packet: Packet): Promise<Answer | undefined> {
    const path = () => this.#path(packet.string());
    switch (name as keyof typeof EXTENSIONS) {
      case "posix-rename@openssh.com":
        return done(rename(path(), path()));
      case "hardlink@openssh.com":
        return done(link(path(), path()));
      case "statvfs@openssh.com":
        return spaceAnswer(path());
      case "fstatvfs@openssh.com":
        return spaceAnswer(this.#find(packet.string()).path);
      case "fsync@openssh.com":
        return done(this.#file(packet.string()).sync());
      case "lsetstat@openssh.com":
        return done(setAttributes(linkChangesOf(path()), packet.attributes()));
      case "limits@openssh.com": {
        const limits = [PACKET_MAX, READ_MAX, READ_MAX, HANDLES_MOST].map(BigInt);
        return { type: TYPE.EXTENDED_REPLY, fields: limits };
      }
      case "copy-data":
        return this.#copy(packet);
      default:
        throw new Rejection(STATUS.UNSUPPORTED, "the extension is not supported");
    }
  }

  #path(path: Buffer): Buffer {
    if (path.length === 0) return this.#home;
    return path[0] === SLASH[0] ? path : child(this.#home, path);
  }

  #find(handle: Buffer): Opened {
    const opened = handle.length === 4 ? this.#opened.get(handle.readUInt32BE()) : undefined;
    if (opened === undefined) throw new Rejection(STATUS.FAILURE, "no such handle");
    return opened;
  }

  #file(handle: Buffer): FileHandle {
    const opened = this.#find(handle);
    if (!("file" in opened)) throw new Rejection(STATUS.FAILURE, "the handle refers to a folder");
    return opened.file;
  }

  async #openFile(path: Buffer, flags: number, { mode = 0o666 }: Attributes): Promise<Answer> {
    this.#checkHandleLimit();
    return this.#keep({ path, file: await open(path, systemFlags(flags), mode) });
  }

  async #openFolder(path: Buffer): Promise<Answer> {
    this.#checkHandleLimit();
    const folder = await opendir(path, { encoding: "buffer" as BufferEncoding });
    return this.#keep({ path, folder, rest: [".", ".."].map((name) => Buffer.from(name)) });
  }

  #checkHandleLimit(): void {
    if (this.#opened.size >= HANDLES_MOST) throw new Rejection(STATUS.FAILURE, "too many files are open");
  }

  #keep(opened: Opened): Answer {
    this.#lastHandle += 1;
    this.#opened.set(this.#lastHandle, opened);
    // If the client disconnects while the file is being opened, close the file again.
    if (this.#isClosed) this.close();
    return { type: TYPE.HANDLE, fields: [encodeNumber(this.#lastHandle)] };
  }

  async #close(handle: number): Promise<void> {
    const opened = this.#opened.get(handle);
    this.#opened.delete(handle);
    if (opened !== undefined) await ("file" in opened ? opened.file.close() : opened.folder.close());
  }

  /** Reads a part of a file. @returns the complete response packet */
  async #read(id: number, packet: Packet): Promise<Buffer> {
    const [file, offset, wanted] = [this.#file(packet.string()), packet.long(), packet.number()];
    const length = Math.min(wanted, READ_MAX);
    // Reads the data directly into the response packet, to avoid a copy.
    const answer = Buffer.allocUnsafe(DATA_HEADER + length);
    const { bytesRead } = await file.read(answer, DATA_HEADER, length, offset);
    if (bytesRead === 0 && length > 0) throw new Rejection(STATUS.EOF, "end of file");
    answer.writeUInt32BE(DATA_HEADER - 4 + bytesRead);
    answer.writeUInt8(TYPE.DATA, 4);
    answer.writeUInt32BE(id, 5);
    answer.writeUInt32BE(bytesRead, 9);
    const used = answer.subarray(0, DATA_HEADER + bytesRead);
    // Copies a short response. The large buffer can then be freed while the response waits for its client.
    return bytesRead < length / 2 ? Buffer.from(used) : used;
  }

  async #list(handle: Buffer): Promise<Answer> {
    const opened = this.#find(handle);
    if (!("folder" in opened)) throw new Rejection(STATUS.FAILURE, "the handle refers to a file");
    const { folder, rest, path } = opened;
    const next = async () => rest.shift() ?? ((await folder.read())?.name as Buffer | undefined);
    this.#names ??= systemNames();
    const names = await this.#names;
    const entries: Field[][] = [];
    while (entries.length < ENTRIES) {
      const name = await next();
      if (name === undefined) break;
      // Skips entries that a different program has just deleted.
      const stats = await lstat(child(path, name)).catch(() => undefined);
      if (stats) entries.push([name, longname(name, stats, names), ...attributeFields(stats)]);
    }
    if (entries.length === 0) throw new Rejection(STATUS.EOF, "end of the folder");
    return { type: TYPE.NAME, fields: [entries.length, ...entries.flat()] };
  }

  /** Copies a part of a file to another file. A length of 0 copies up to the end of the file. */
  async #copy(packet: Packet): Promise<undefined> {
    const from = packet.string();
    const [start, length] = [packet.long(), packet.long()];
    const to = packet.string();
    const offset = packet.long() - start;
    const [source, target] = [this.#file(from), this.#file(to)];
    const [sourceStats, targetStats] = await Promise.all([source.stat(), target.stat()]);
    if (sourceStats.dev === targetStats.dev && sourceStats.ino === targetStats.ino) {
      throw new Rejection(STATUS.FAILURE, "cannot copy a file to itself");
    }
    const end = length === 0 ? Number.POSITIVE_INFINITY : start + length;
    const buffer = Buffer.allocUnsafe(PACKET_MAX);
    for (let at = start; at < end && !this.#isClosed; ) {
      const { bytesRead } = await source.read(buffer, 0, Math.min(buffer.length, end - at), at);
      if (bytesRead === 0) return;
      await writeAll(target, at + offset, buffer.subarray(0, bytesRead));
      at += bytesRead;
    }
  }
}

/** Waits for an operation and returns undefined, so that the server sends the status OK. */
const done = async (work: Promise<unknown>): Promise<undefined> => void (await work);

const attributesAnswer = (stats: Stats): Answer => ({ type: TYPE.ATTRS, fields: attributeFields(stats) });

/** Returns a response with a path and no attributes. */
const nameAnswer = (path: Buffer): Answer => ({ type: TYPE.NAME, fields: [1, path, path, 0] });

/** Returns a response with the free and used space of the file system that contains a path. */
async function spaceAnswer(path: Buffer): Promise<Answer> {
  const { bsize, blocks, bfree, bavail, files, ffree } = await statfs(path, { bigint: true });
  // Node.js does not report a file system's fragment size, id, flags or maximum file name length. The response contains
  // these values instead: the block size, 0, 0 and 255. OpenSSH's client shows only the fragment size.
  const fields = [bsize, bsize, blocks, bfree, bavail, files, ffree, ffree, 0n, 0n, 255n];
  return { type: TYPE.EXTENDED_REPLY, fields };
}

async function writeAll(file: FileHandle, offset: number, data: Buffer): Promise<void> {
  // If the offset is not a safe integer, Node.js would write at the file's current position.
  if (!Number.isSafeInteger(offset + data.length)) {
    throw new Rejection(STATUS.FAILURE, "the offset is too large");
  }
  for (let written = 0; written < data.length; ) {
    const left = data.length - written;
    const { bytesWritten } = await file.write(data, written, left, offset + written);
    written += bytesWritten;
  }
}
