import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import {
  prepareSocketPath,
  removeSocket,
  serviceListens,
  socketPath,
} from "../../../server/admin/socketPath.ts";
import { testFolder } from "../../support/folder.ts";
import { isRoot, NOBODY } from "../../support/nobody.ts";

async function listenOn(path: string) {
  const server = createServer().listen(path);
  onTestFinished(() => void server.close());
  await once(server, "listening");
}

function longFolder(): string {
  const folder = join(testFolder(), "a-folder-with-a-long-name-".repeat(5));
  mkdirSync(folder);
  return folder;
}

test("the socket is in the data folder", async () => {
  const folder = testFolder();
  expect(await prepareSocketPath(folder)).toBe(join(folder, "admin.sock"));
  expect(socketPath(folder)).toBe(join(folder, "admin.sock"));
});

test("for a data folder with a long path, the socket is elsewhere, and can be found and removed", async () => {
  const folder = longFolder();
  const path = await prepareSocketPath(folder);
  await listenOn(path);
  expect(socketPath(folder)).toBe(path);
  expect(statSync(dirname(path)).mode & 0o777).toBe(0o700);
  expect(readFileSync(join(folder, "admin.sock.path"), "utf8")).toBe(path);
  removeSocket(folder);
  expect(() => statSync(dirname(path))).toThrow("ENOENT");
  expect(socketPath(folder)).toBe(join(folder, "admin.sock"));
});

test("rejects a folder for which a service already listens", async () => {
  for (const folder of [testFolder(), longFolder()]) {
    await listenOn(await prepareSocketPath(folder));
    await expect(prepareSocketPath(folder)).rejects.toThrow(
      `Another gatehouse-server process is using the data folder ${folder}. Stop it first`,
    );
    removeSocket(folder);
  }
});

/** Creates a stale temporary folder. Returns the folder, and the socket path in it to which a pointer file refers. */
function pointedAt(mode: number) {
  const holder = testFolder();
  chmodSync(holder, mode);
  return { holder, path: join(holder, "admin.sock") };
}

test.each([
  ["is empty", ""],
  ["is truncated", "/tmp/gate"],
  ["is relative", "admin.sock"],
  ["refers to another file", "/etc/passwd"],
  ["refers to a missing folder", "/nowhere/at/all/admin.sock"],
])(
  "a pointer that %s does not block a start, and nothing is removed because of it",
  async (_case, content) => {
    const folder = longFolder();
    const bystander = join(process.cwd(), "package.json");
    writeFileSync(join(folder, "admin.sock.path"), content);
    expect(socketPath(folder)).toBe(join(folder, "admin.sock"));
    const path = await prepareSocketPath(folder);
    expect(readFileSync(join(folder, "admin.sock.path"), "utf8")).toBe(path);
    expect(existsSync(bystander)).toBe(true);
    removeSocket(folder);
    expect(readdirSync(folder)).toEqual([]);
  },
);

test("a folder that other users can enter is neither trusted nor removed", async () => {
  const folder = longFolder();
  const { holder, path } = pointedAt(0o755);
  await listenOn(path);
  writeFileSync(join(folder, "admin.sock.path"), path);
  expect(socketPath(folder)).toBe(join(folder, "admin.sock"));
  expect(await serviceListens(folder)).toBe(false);
  removeSocket(folder);
  expect(existsSync(path)).toBe(true);
  expect(existsSync(holder)).toBe(true);
});

test("a link in the place of the folder is not followed", () => {
  const folder = longFolder();
  const { holder } = pointedAt(0o700);
  const link = join(testFolder(), "link");
  symlinkSync(holder, link);
  writeFileSync(join(folder, "admin.sock.path"), join(link, "admin.sock"));
  expect(socketPath(folder)).toBe(join(folder, "admin.sock"));
});

// Only root can change the owner of a folder.
test.runIf(isRoot)("a folder of another user is not trusted", async () => {
  const folder = longFolder();
  const { holder, path } = pointedAt(0o700);
  await listenOn(path);
  chownSync(holder, NOBODY, NOBODY);
  writeFileSync(join(folder, "admin.sock.path"), path);
  expect(socketPath(folder)).toBe(join(folder, "admin.sock"));
  // Root can administer the service of another user if the pointer file belongs to that user.
  chownSync(join(folder, "admin.sock.path"), NOBODY, NOBODY);
  expect(socketPath(folder)).toBe(path);
});

test("keeps other files in the folder", async () => {
  const folder = longFolder();
  const { holder, path } = pointedAt(0o700);
  writeFileSync(join(holder, "other"), "");
  writeFileSync(join(folder, "admin.sock.path"), path);
  await prepareSocketPath(folder);
  expect(existsSync(join(holder, "other"))).toBe(true);
  removeSocket(folder);
});
