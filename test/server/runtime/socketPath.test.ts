import { once } from "node:events";
import { mkdirSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { prepareSocketPath, removeSocket, socketPath } from "../../../server/dist/admin/socketPath.js";
import { testFolder } from "../../support/folder.ts";

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

test("in a data folder with a long path it is elsewhere, and can be found and removed", async () => {
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

test("a folder that a service listens for is not taken over", async () => {
  for (const folder of [testFolder(), longFolder()]) {
    await listenOn(await prepareSocketPath(folder));
    await expect(prepareSocketPath(folder)).rejects.toThrow(
      `Another service runs on the data folder ${folder}`,
    );
    removeSocket(folder);
  }
});
