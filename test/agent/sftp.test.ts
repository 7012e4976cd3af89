import { hash, randomBytes } from "node:crypto";
import { chmodSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Client, SFTPWrapper } from "ssh2";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { installedSftpServer } from "../../agent/sftp.ts";
import { testFolder } from "../support/folder.ts";
import { type FakeGateway, newRsaKey } from "./FakeGateway.ts";
import { type Pair, startPair } from "./support.ts";

const privateKey = newRsaKey();
const SIZE = 8_000_001;

let pair: Pair;
let gateway: FakeGateway;
let client: Client;
let sftp: SFTPWrapper;
beforeAll(async () => {
  pair = await startPair({ flags: ["--sftp-server", "internal"] });
  gateway = pair.gateway;
  gateway.hold(privateKey);
  client = await gateway.login({ username: "deploy", privateKey });
  sftp = await sftpOf(client);
});
afterAll(() => pair.stop());

const sftpOf = (of: Client): Promise<SFTPWrapper> =>
  promisify(of.sftp.bind(of) as (cb: (e: Error | undefined, s: SFTPWrapper) => void) => void)();

/** Creates a folder that the agent's user may write to. */
function writable(): string {
  const folder = testFolder();
  chmodSync(folder, 0o777);
  return folder;
}

const call = <T = void>(work: (done: (error?: Error | null, result?: T) => void) => void) =>
  new Promise<T>((resolve, reject) =>
    work((error, result) => (error ? reject(error) : resolve(result as T))),
  );

it("uploads and downloads a file unchanged, with many concurrent requests", { tags: ["long"] }, async () => {
  const folder = writable();
  const [local, remote, back] = ["local", "remote", "back"].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  const content = randomBytes(SIZE);
  writeFileSync(local, content);
  await call((done) => sftp.fastPut(local, remote, done));
  expect(hash("sha256", readFileSync(remote))).toBe(hash("sha256", content));
  await call((done) => sftp.fastGet(remote, back, done));
  expect(hash("sha256", readFileSync(back))).toBe(hash("sha256", content));
});

it("creates, lists, renames, links and deletes", async () => {
  const folder = writable();
  const at = (name: string) => join(folder, name);
  await call((done) => sftp.mkdir(at("sub"), { mode: 0o700 }, done));
  await call((done) => sftp.writeFile(at("sub/a"), "text", done));
  await call((done) => sftp.rename(at("sub/a"), at("sub/b"), done));
  await call((done) => sftp.chmod(at("sub/b"), 0o640, done));
  await call((done) => sftp.utimes(at("sub/b"), 1000, 2000, done));
  const [entry] = await call<{ filename: string; attrs: { size: number; mtime: number; mode: number } }[]>(
    (done) => sftp.readdir(at("sub"), done as never),
  );
  expect(entry).toMatchObject({ filename: "b", attrs: { size: 4, mtime: 2000, mode: 0o100640 } });
  expect((await call<{ mode: number }>((done) => sftp.stat(at("sub"), done as never))).mode & 0o777).toBe(
    0o700,
  );
  expect(await call((done) => sftp.realpath(at("sub/../sub"), done as never))).toBe(at("sub"));
  await call((done) => sftp.unlink(at("sub/b"), done));
  await call((done) => sftp.rmdir(at("sub"), done));
  expect(readdirSync(folder)).toEqual([]);
});

it.each([
  ["a missing file", 2, "/nowhere/at/all"],
  ["a file that others may not read", 3, "closed"],
])("reports why %s cannot be read", async (_what, code, path) => {
  const folder = writable();
  const closed = join(folder, "closed");
  writeFileSync(closed, "secret", { mode: 0o000 });
  const read = call((done) => sftp.readFile(path === "closed" ? closed : path, done as never));
  await expect(read).rejects.toMatchObject({ code });
});

it("does not overwrite an existing file when it renames a file", async () => {
  const folder = writable();
  for (const name of ["a", "b"]) writeFileSync(join(folder, name), name);
  const renamed = call((done) => sftp.rename(join(folder, "a"), join(folder, "b"), done));
  await expect(renamed).rejects.toMatchObject({ code: 4 });
  expect(readFileSync(join(folder, "b"), "utf8")).toBe("b");
});

it("processes requests in order", async () => {
  const path = join(writable(), "log");
  const lines = Array.from({ length: 500 }, (_, line) => `${line}\n`);
  const handle = await call<Buffer>((done) => sftp.open(path, "a", done as never));
  const write = (line: string) =>
    call((done) => sftp.write(handle, Buffer.from(line), 0, line.length, 0, done));
  await Promise.all(lines.map(write));
  await call((done) => sftp.close(handle, done));
  expect(readFileSync(path, "utf8")).toBe(lines.join(""));
});

it("keeps at most 256 files open, and closes them when the client disconnects", async () => {
  const folder = writable();
  writeFileSync(join(folder, "file"), "");
  chmodSync(join(folder, "file"), 0o644);
  const open = () =>
    call<Buffer>((done) => sftp.open(join(folder, "file"), "r", done as never)).then(
      () => "opened",
      ({ code }) => code as number,
    );
  const outcomes = await Promise.all(Array.from({ length: 260 }, open));
  expect(outcomes.filter((outcome) => outcome === "opened")).toHaveLength(256);
  expect(outcomes.filter((outcome) => outcome === 4)).toHaveLength(4);
});

const installed = installedSftpServer();

it.skipIf(installed === undefined)(
  `runs the device's own SFTP server${installed === undefined ? " (none is installed)" : ""}`,
  async () => {
    const device = await startPair();
    onTestFinished(() => device.stop());
    device.gateway.hold(privateKey);
    const login = await device.gateway.login({ username: "deploy", privateKey });
    const files = await sftpOf(login);
    const folder = writable();
    const [from, to] = [join(folder, "from"), join(folder, "to")];
    for (const path of [from, to]) await call((done) => files.writeFile(path, path, done));
    // An extension of OpenSSH that the agent's own SFTP server does not have.
    await call((done) => files.ext_openssh_rename(from, to, done));
    expect(readFileSync(to, "utf8")).toBe(from);
    login.end();
  },
);
