import { execFileSync, spawn } from "node:child_process";
import {
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statfsSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { Duplex, duplexPair } from "node:stream";
import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import { FileServer, installedSftpServer } from "../../agent/sftp.ts";
import { testFolder } from "../support/folder.ts";
import { namesOf, REQUEST, type SftpAnswer, SftpClient, stringsOf } from "./SftpClient.ts";

const { OPEN, CLOSE, READ, WRITE, STAT, FSTAT, REMOVE, RENAME, EXTENDED } = REQUEST;
const [READ_WRITE_CREATE, NO_ATTRIBUTES] = [1 | 2 | 8, 0];
const STATUS = 101;
const [OK, EOF, NO_SUCH_FILE, FAILURE, BAD_MESSAGE, UNSUPPORTED] = [0, 1, 2, 4, 5, 8];

/** Starts the agent's own SFTP server. */
function serve(home: string): { readonly client: SftpClient; readonly served: Promise<void> } {
  const [near, far] = duplexPair();
  const client = new SftpClient(far);
  onTestFinished(() => client.end());
  return { client, served: new FileServer(near, home).serve() };
}

async function begun(home: string): Promise<SftpClient> {
  const { client, served } = serve(home);
  served.catch(() => {});
  await client.begin();
  return client;
}

/** Starts OpenSSH's SFTP server. */
async function foreignServer(program: string, home: string): Promise<SftpClient> {
  const child = spawn(program, { cwd: home, stdio: ["pipe", "pipe", "ignore"] });
  const client = new SftpClient(Duplex.from({ writable: child.stdin, readable: child.stdout }));
  await client.begin();
  return client;
}

const codeOf = ({ type, body }: SftpAnswer): number => {
  expect(type).toBe(STATUS);
  return body.readUInt32BE();
};

/**
 * A model of an SFTP server with a few files in memory. The test compares the real servers' responses with the model.
 */
class Model {
  readonly names = new Map<string, { bytes: Buffer }>();
  readonly handles: ({ bytes: Buffer } | undefined)[] = [];

  open(name: string): void {
    const file = this.names.get(name) ?? { bytes: Buffer.alloc(0) };
    this.names.set(name, file);
    this.handles.push(file);
  }

  process(operation: Operation): Expected {
    switch (operation.kind) {
      case "write": {
        const file = this.handles[operation.handle];
        if (file === undefined) return { code: FAILURE };
        const { offset, data } = operation;
        const bytes = Buffer.alloc(Math.max(file.bytes.length, data.length === 0 ? 0 : offset + data.length));
        file.bytes.copy(bytes);
        Buffer.from(data).copy(bytes, offset);
        file.bytes = bytes;
        return { code: OK };
      }
      case "read": {
        const file = this.handles[operation.handle];
        if (file === undefined) return { code: FAILURE };
        const data = file.bytes.subarray(operation.offset, operation.offset + operation.length);
        return data.length === 0 ? { code: EOF } : { data };
      }
      case "close": {
        const isOpen = this.handles[operation.handle] !== undefined;
        this.handles[operation.handle] = undefined;
        return { code: isOpen ? OK : FAILURE };
      }
      case "size": {
        const file = this.handles[operation.handle];
        return file === undefined ? { code: FAILURE } : { size: file.bytes.length };
      }
      case "rename": {
        const file = this.names.get(operation.from);
        if (file === undefined) return { code: NO_SUCH_FILE };
        if (!operation.overwrites && this.names.has(operation.to)) return { code: FAILURE };
        this.names.delete(operation.from);
        this.names.set(operation.to, file);
        return { code: OK };
      }
      case "remove":
        return { code: this.names.delete(operation.name) ? OK : NO_SUCH_FILE };
      case "look": {
        const file = this.names.get(operation.name);
        return file === undefined ? { code: NO_SUCH_FILE } : { size: file.bytes.length };
      }
    }
  }
}

type Operation =
  | { readonly kind: "write"; readonly handle: number; readonly offset: number; readonly data: Uint8Array }
  | { readonly kind: "read"; readonly handle: number; readonly offset: number; readonly length: number }
  | { readonly kind: "close" | "size"; readonly handle: number }
  | { readonly kind: "rename"; readonly from: string; readonly to: string; readonly overwrites: boolean }
  | { readonly kind: "remove" | "look"; readonly name: string };

type Expected = { readonly code: number } | { readonly data: Buffer } | { readonly size: number };

const NAMES = ["a", "b", "c"];
const HANDLES = 4;
const name = fc.constantFrom(...NAMES, "d");
const handle = fc.nat({ max: HANDLES - 1 });
const offset = fc.nat({ max: 40 });
const operation: fc.Arbitrary<Operation> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant("write" as const), handle, offset, data: fc.uint8Array() }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("read" as const),
      handle,
      offset,
      length: fc.integer({ min: 1, max: 60 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("close" as const), handle }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("size" as const), handle }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("rename" as const),
      from: name,
      to: name,
      overwrites: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("remove" as const), name }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("look" as const), name }) },
);

function encoded(client: SftpClient, one: Operation, handles: readonly Buffer[]): Buffer {
  const of = (index: number) => handles[index] ?? Buffer.of();
  switch (one.kind) {
    case "write":
      return client.request(WRITE, of(one.handle), BigInt(one.offset), Buffer.from(one.data));
    case "read":
      return client.request(READ, of(one.handle), BigInt(one.offset), one.length);
    case "close":
      return client.request(CLOSE, of(one.handle));
    case "size":
      return client.request(FSTAT, of(one.handle));
    case "rename":
      return one.overwrites
        ? client.request(EXTENDED, "posix-rename@openssh.com", one.from, one.to)
        : client.request(RENAME, one.from, one.to);
    case "remove":
      return client.request(REMOVE, one.name);
    case "look":
      return client.request(STAT, one.name);
  }
}

function read({ type, body }: SftpAnswer, { kind }: Operation): Expected {
  if (type === STATUS) {
    const code = body.readUInt32BE();
    // If a handle is already closed, OpenSSH's response to CLOSE has the code of an unrelated earlier error. The test
    // therefore compares every error of CLOSE as FAILURE.
    return { code: kind === "close" && code !== OK ? FAILURE : code };
  }
  if (type === 103) return { data: stringsOf(body)[0] ?? Buffer.of() };
  expect(type).toBe(105);
  return { size: Number(body.readBigUInt64BE(4)) };
}

/** Checks that a server processes requests in order if the requests arrive together, split at arbitrary bytes. */
async function checkOrder(start: (home: string) => Promise<SftpClient>, runs: number): Promise<void> {
  const property = fc.asyncProperty(
    fc.array(operation, { minLength: 1, maxLength: 60 }),
    fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 8 }),
    async (operations, pieces) => {
      const home = testFolder();
      const client = await start(home);
      const model = new Model();
      const handles: Buffer[] = [];
      for (let index = 0; index < HANDLES; index += 1) {
        const opened = NAMES[index % NAMES.length] ?? "";
        model.open(opened);
        handles.push(await client.open(OPEN, opened, READ_WRITE_CREATE, NO_ATTRIBUTES));
      }
      let bytes = Buffer.concat(operations.map((one) => encoded(client, one, handles)));
      for (let index = 0; bytes.length > 0; index += 1) {
        const piece = pieces[index % pieces.length] ?? 1;
        client.send(bytes.subarray(0, piece));
        bytes = bytes.subarray(piece);
      }
      for (const [index, one] of operations.entries()) {
        const answer = await client.next();
        expect(answer.id).toBe(HANDLES + 1 + index);
        expect(read(answer, one), JSON.stringify(one)).toEqual(model.process(one));
      }
      expect(readdirSync(home).toSorted()).toEqual([...model.names.keys()].toSorted());
      for (const [path, { bytes: content }] of model.names) {
        expect(readFileSync(join(home, path))).toEqual(content);
      }
      client.end();
    },
  );
  await fc.assert(property, { numRuns: runs });
}

describe("the agent's own SFTP server", () => {
  it("processes requests in order, however their bytes are split", () => checkOrder(begun, 150));

  const installed = installedSftpServer();
  it.skipIf(installed === undefined)(
    `behaves like OpenSSH's${installed === undefined ? " (which is not installed)" : ""}`,
    () => checkOrder((home) => foreignServer(installed ?? "", home), 15),
  );

  it("keeps names as bytes", async () => {
    const home = testFolder();
    const client = await begun(home);
    const odd = Buffer.from("636166e920ff", "hex");
    await client.open(OPEN, odd, READ_WRITE_CREATE, NO_ATTRIBUTES);
    const folder = await client.open(REQUEST.OPENDIR, "");
    const names = namesOf(await client.exchange(REQUEST.READDIR, folder)).map(
      ({ name: entryName }) => entryName,
    );
    expect(names.map(String).slice(0, 2)).toEqual([".", ".."]);
    expect(names[2]).toEqual(odd);
    expect(readdirSync(home, "buffer")).toEqual([odd]);
    const [{ name: absolute } = { name: Buffer.of() }] = namesOf(
      await client.exchange(REQUEST.REALPATH, odd),
    );
    expect(absolute).toEqual(Buffer.concat([Buffer.from(`${home}/`), odd]));
    expect(codeOf(await client.exchange(REQUEST.SYMLINK, odd, "link"))).toBe(OK);
    const [{ name: target } = { name: Buffer.of() }] = namesOf(
      await client.exchange(REQUEST.READLINK, "link"),
    );
    expect(target).toEqual(odd);
  });

  it("lists a folder like `ls -l`", async () => {
    // The listing contains `..`, which is the parent folder. The test therefore uses a parent folder that no other test
    // changes.
    const home = join(testFolder(), "listed");
    mkdirSync(home);
    const client = await begun(home);
    writeFileSync(join(home, "new"), "1234", { mode: 0o640 });
    writeFileSync(join(home, "old"), "");
    utimesSync(join(home, "old"), 1_000_000_000, 1_000_000_000);
    mkdirSync(join(home, "sub"));
    execFileSync("chmod", ["3775", join(home, "sub")]);
    linkSync(join(home, "new"), join(home, "second"));
    symlinkSync("new", join(home, "link"));
    const folder = await client.open(REQUEST.OPENDIR, home);
    const shown = namesOf(await client.exchange(REQUEST.READDIR, folder)).map((entry) => entry.shown);
    const listed = execFileSync("ls", ["-la", home], {
      encoding: "utf8",
      env: { ...process.env, LC_ALL: "C" },
    });
    const columns = (lines: readonly string[]) =>
      lines
        .map((line) =>
          line
            .trim()
            .replace(/ -> .*/, "")
            .split(/\s+/),
        )
        .toSorted();
    expect(columns(shown)).toEqual(columns(listed.trim().split("\n").slice(1)));
  });

  it("lists a large folder in several answers", async () => {
    const home = testFolder();
    const client = await begun(home);
    for (let index = 0; index < 250; index += 1) writeFileSync(join(home, `file-${index}`), "");
    const folder = await client.open(REQUEST.OPENDIR, ".");
    const names = new Set<string>();
    for (;;) {
      const answer = await client.exchange(REQUEST.READDIR, folder);
      if (answer.type === STATUS) break;
      for (const { name: entryName } of namesOf(answer)) names.add(String(entryName));
    }
    expect(names.size).toBe(252);
  });

  it("links, syncs, copies and reports space", async () => {
    const home = testFolder();
    const { client } = serve(home);
    const extensions = await client.begin();
    expect(extensions).toEqual(expect.arrayContaining(["posix-rename@openssh.com", "hardlink@openssh.com"]));
    const content = Buffer.alloc(600_000, "content ");
    writeFileSync(join(home, "file"), content);
    expect(codeOf(await client.exchange(EXTENDED, "hardlink@openssh.com", "file", "second"))).toBe(OK);
    expect(statSync(join(home, "second")).ino).toBe(statSync(join(home, "file")).ino);
    const source = await client.open(OPEN, "file", 1, NO_ATTRIBUTES);
    const copy = await client.open(OPEN, "copy", READ_WRITE_CREATE, NO_ATTRIBUTES);
    expect(codeOf(await client.exchange(EXTENDED, "copy-data", source, 8n, 0n, copy, 0n))).toBe(OK);
    expect(codeOf(await client.exchange(EXTENDED, "fsync@openssh.com", copy))).toBe(OK);
    expect(readFileSync(join(home, "copy"))).toEqual(content.subarray(8));
    const { body } = await client.exchange(EXTENDED, "statvfs@openssh.com", "file");
    expect(Number(body.readBigUInt64BE(16))).toBe(statfsSync(home).blocks);
    const { body: ofHandle } = await client.exchange(EXTENDED, "fstatvfs@openssh.com", copy);
    expect(ofHandle.subarray(0, 24)).toEqual(body.subarray(0, 24));
    expect(codeOf(await client.exchange(EXTENDED, "unknown@example.org"))).toBe(UNSUPPORTED);
  });

  it("sets owner, mode, times and size of a file, and the times of a symbolic link", async () => {
    const home = testFolder();
    const client = await begun(home);
    const file = join(home, "file");
    writeFileSync(file, "12345");
    symlinkSync("file", join(home, "link"));
    const { uid, gid } = statSync(file);
    // The attributes of an SFTP SETSTAT request: flags (15), size, owner, group, mode, access time and modification
    // time.
    const all = [15, 3n, uid, gid, 0o4711, 100, 200];
    expect(codeOf(await client.exchange(REQUEST.SETSTAT, "file", ...all))).toBe(OK);
    expect(statSync(file)).toMatchObject({ size: 3, atimeMs: 100_000, mtimeMs: 200_000 });
    expect(codeOf(await client.exchange(EXTENDED, "lsetstat@openssh.com", "link", 8, 300, 400))).toBe(OK);
    expect(lstatSync(join(home, "link")).mtimeMs).toBe(400_000);
    expect(statSync(file).mtimeMs).toBe(200_000);
  });

  it("writes nothing at an offset above 2^53, and copies no file to itself", async () => {
    const home = testFolder();
    const client = await begun(home);
    writeFileSync(join(home, "file"), "hello");
    linkSync(join(home, "file"), join(home, "second"));
    const [one, other] = [
      await client.open(OPEN, "file", READ_WRITE_CREATE, NO_ATTRIBUTES),
      await client.open(OPEN, "second", READ_WRITE_CREATE, NO_ATTRIBUTES),
    ];
    expect(codeOf(await client.exchange(WRITE, one, 2n ** 60n, "XY"))).toBe(FAILURE);
    expect(codeOf(await client.exchange(EXTENDED, "copy-data", one, 0n, 0n, other, 5n))).toBe(FAILURE);
    expect(readFileSync(join(home, "file"), "utf8")).toBe("hello");
  });

  it("stops when `close` is called, even if the stream has not ended", async () => {
    const [near] = duplexPair();
    const server = new FileServer(near, testFolder());
    const served = server.serve();
    server.close();
    await served;
  });

  it("does not wait for the other end of a pipe", async () => {
    const home = testFolder();
    const client = await begun(home);
    execFileSync("mkfifo", [join(home, "pipe")]);
    const pipe = await client.open(OPEN, "pipe", 1, NO_ATTRIBUTES);
    expect(codeOf(await client.exchange(READ, pipe, 0n, 10))).toBe(FAILURE);
  });

  it.each([
    ["a path with a zero byte", ["a\0b", 1, NO_ATTRIBUTES], FAILURE],
    ["a name that is too long", ["a".repeat(300), 1, NO_ATTRIBUTES], BAD_MESSAGE],
  ])("rejects %s", async (_what, fields, code) => {
    const client = await begun(testFolder());
    expect(codeOf(await client.exchange(OPEN, ...fields))).toBe(code);
  });

  it.each([
    ["a packet above 256 KiB", Buffer.from("00040001", "hex")],
    ["an empty packet", Buffer.from("00000000", "hex")],
    ["a request whose string is longer than its packet", Buffer.from("0000000911000000010000ffff", "hex")],
  ])("ends at %s", async (_what, bytes) => {
    const { client, served } = serve(testFolder());
    await client.begin();
    client.send(bytes);
    await expect(served).rejects.toThrow(/SFTP packet/);
  });
});
