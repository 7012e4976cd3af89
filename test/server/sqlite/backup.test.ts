import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import Fastify from "fastify";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { openDatabase } from "../../../server/db/openDatabase.ts";
import { type BackupManifest, readBackup } from "../../../server/files/backupFile.ts";
import { streamDurably } from "../../../server/files/durableFile.ts";
import { readHostKey } from "../../../server/secrets/hostKey.ts";
import { testFolder } from "../../support/folder.ts";
import { callServerCommand } from "../../support/serverCommand.ts";
import { runServerCommand, startService, testService } from "../../support/service.ts";
import { shared } from "../../support/shared.ts";
import { user } from "../db/rows.ts";
import { expectFailure } from "../process/failure.ts";
import { usersIn } from "./usersIn.ts";

const service = shared(startService);
beforeAll(async () => {
  await service.createUser({ username: "ann", password: "hunter22" });
});

const backup = (file: string, dataDir = service.dataDir) =>
  callServerCommand(["backup", file, "--data-dir", dataDir]);

/** Extracts the database of a backup. Returns the database's path and the manifest. */
async function extracted(
  file: string,
): Promise<{ readonly database: string; readonly manifest?: BackupManifest }> {
  const database = join(testFolder(), "extracted.db");
  const manifest = await readBackup(file, (content) => streamDurably(database, content));
  return { database, ...(manifest && { manifest }) };
}

test("backs up a running service, for its user only, and lists the secret", async () => {
  const folder = testFolder();
  const file = join(folder, "copy.backup");
  // Runs this command in a separate process, as an operator does. The later commands run in the test's process.
  const result = await runServerCommand(["backup", file, "--data-dir", service.dataDir]);
  expect(result).toMatchObject({ code: 0, stderr: "" });
  const { database, manifest } = await extracted(file);
  expect(manifest).toMatchObject({
    secret: { fingerprint: expect.stringMatching(/^[0-9a-f]{16}$/), source: join(service.dataDir, "secret") },
    hostKey: null,
    external: [],
  });
  expect(result.stdout).toBe(
    `Wrote the backup ${file} (${statSync(file).size} bytes).\n` +
      "It contains the database. The service has no SSH host key.\n" +
      `A restore needs the instance secret ${manifest?.secret.fingerprint}, which is not in the backup. Keep a copy of ` +
      `it in another place: ${join(service.dataDir, "secret")}.\n`,
  );
  expect(usersIn(database)).toEqual(["ann"]);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readdirSync(folder)).toEqual(["copy.backup"]);
  // The copy does not contain the secret that decrypts values in the copy.
  const secret = readFileSync(join(service.dataDir, "secret"), "utf8").trim();
  expect(readFileSync(file).includes(secret)).toBe(false);
  expect(readdirSync(service.dataDir).filter((name) => name.includes("snapshot"))).toEqual([]);
  // The service still accepts writes.
  await service.createUser({ username: "bob", password: "hunter22" });
  expect(usersIn((await extracted(file)).database)).toEqual(["ann"]);
});

test("seals the SSH host key, and names the settings that the backup does not contain", {
  tags: ["long"],
}, async () => {
  const secret = "a configured secret of more than 32 characters";
  const env = {
    GATEHOUSE_SECRET: secret,
    GATEHOUSE_INTERNAL_TOKEN: "an-internal-token-of-the-backed-up-service",
  };
  const keyed = await testService({ flags: ["--ssh-port", "0"], env });
  const key = readHostKey(keyed.dataDir, undefined);
  // The backup contains the key that clients see, even if its file has disappeared since the start.
  rmSync(join(keyed.dataDir, "ssh_host_ed25519_key"));
  const file = join(testFolder(), "copy.backup");
  const { stdout } = await backup(file, keyed.dataDir);
  const { manifest } = await extracted(file);
  expect(manifest).toMatchObject({
    secret: { source: "GATEHOUSE_SECRET or GATEHOUSE_SECRET_FILE" },
    hostKey: { fingerprint: key.fingerprint, source: join(keyed.dataDir, "ssh_host_ed25519_key") },
    external: ["GATEHOUSE_INTERNAL_TOKEN"],
  });
  expect(stdout).toContain(`It contains the database and the SSH host key ${key.fingerprint}.\n`);
  expect(stdout).toContain("does not contain these settings and their files: GATEHOUSE_INTERNAL_TOKEN.\n");
  const bytes = readFileSync(file);
  expect(bytes.includes("PRIVATE KEY")).toBe(false);
  for (const line of key.pem.split("\n").slice(1, -2)) expect(bytes.includes(line)).toBe(false);
  expect(bytes.includes(secret)).toBe(false);
});

test.skipIf(process.platform !== "linux")(
  "can be read with the programs of the operating system",
  async () => {
    const file = join(testFolder(), "copy.backup");
    await backup(file);
    const { database, manifest } = await extracted(file);
    const output = (command: string) =>
      execFileSync("sh", ["-c", command, "sh", file], { maxBuffer: 64 * 1024 * 1024 });
    expect(output('tail -n +3 "$1" | head -c -65').equals(readFileSync(database))).toBe(true);
    const [, facts = ""] = output('head -n 2 "$1"').toString().split("\n");
    expect(JSON.parse(facts)).toEqual(manifest);
    const [sum = ""] = output('head -c -65 "$1" | sha256sum').toString().split(" ");
    expect(output('tail -c 65 "$1"').toString()).toBe(`${sum}\n`);
  },
);

test("does not overwrite an existing file, such as the database itself", async () => {
  const file = join(service.dataDir, "gatehouse.db");
  const before = statSync(file).ino;
  expect(await backup(file)).toEqual({
    code: 1,
    stdout: "",
    stderr: `gatehouse-server: ${file} already exists. Choose another file.\n`,
  });
  expect(statSync(file).ino).toBe(before);
});

test("reports a fault of the file, and that no service runs", async () => {
  const folder = testFolder();
  const missing = join(folder, "missing", "copy.db");
  expect(await backup(missing)).toMatchObject({
    code: 1,
    stderr: `gatehouse-server: Cannot write ${missing}: the folder does not exist. Create it, or choose another path.\n`,
  });
  const stopped = await backup(join(folder, "copy.db"), folder);
  expect(stopped).toMatchObject({ code: 1, stderr: expect.stringContaining("No service runs on") });
  expect(readdirSync(folder)).toEqual([]);
});

test("reports a running service of an earlier version", async () => {
  const [dataDir, folder] = [testFolder(), testFolder()];
  const earlier = Fastify();
  onTestFinished(() => earlier.close());
  await earlier.listen({ path: join(dataDir, "admin.sock") });
  expect(await backup(join(folder, "copy.backup"), dataDir)).toEqual({
    code: 1,
    stdout: "",
    stderr:
      "gatehouse-server: The running service does not support this command, because it has a different version. Run the " +
      "command with that version: `npx @gatehouse-access/server@<version> …`. A restart with the installed version would " +
      "migrate the database, so back up the service first.\n",
  });
  expect(readdirSync(folder)).toEqual([]);
});

describe.skipIf(process.platform === "win32")(
  "without free space, reports the failure and leaves no file",
  () => {
    const LIMIT = 2 * 1024 * 1024;
    const largerThanThat = async () => {
      const dataDir = testFolder();
      const file = join(dataDir, "gatehouse.db");
      await (await openDatabase({ file })).close();
      const sqlite = new Sqlite(file);
      sqlite.exec(`CREATE TABLE "Filler" AS SELECT zeroblob(${LIMIT}) AS "data"`);
      sqlite.close();
      return dataDir;
    };

    test("next to the database", { tags: ["long"] }, async () => {
      const dataDir = await largerThanThat();
      const full = await testService({ dataDir, fileLimit: LIMIT });
      const folder = testFolder();
      const result = await backup(join(folder, "copy.db"), dataDir);
      expect(result).toMatchObject({ code: 1, stdout: "" });
      const [, where, needed, free] =
        /^gatehouse-server: Cannot copy the database in the folder (.*): the copy needs (\d+) bytes, and (\d+) are free \(SQLITE_[A-Z_]+\)\n$/.exec(
          result.stderr,
        ) ?? [];
      expect([where, Number(free)]).toEqual([dataDir, expect.any(Number)]);
      expect(Number(needed)).toBeGreaterThan(LIMIT);
      expect(readdirSync(folder)).toEqual([]);
      expect(readdirSync(dataDir).filter((name) => name.includes("snapshot"))).toEqual([]);
      // The service still accepts writes.
      await full.createUser({ username: "bob", password: "hunter22" });
    });

    test("at the destination", { tags: ["long"] }, async () => {
      const dataDir = await largerThanThat();
      await testService({ dataDir });
      const folder = testFolder();
      const file = join(folder, "copy.db");
      const args = ["backup", file, "--data-dir", dataDir];
      const result = await runServerCommand(args, { fileLimit: LIMIT });
      expectFailure(
        result,
        /^gatehouse-server: Cannot write [^\n]*copy\.db \(\d+ bytes\): the file is too large\. [^\n]*\n$/,
      );
      expect(readdirSync(folder)).toEqual([]);
      expect((await backup(file, dataDir)).code).toBe(0);
      expect(readdirSync(folder)).toEqual(["copy.db"]);
    });
  },
);

async function opened() {
  const folder = testFolder();
  const { client, snapshots, close } = await openDatabase({ file: join(folder, "test.db") });
  onTestFinished(close);
  if (!snapshots) throw new Error("the SQLite database has no snapshots");
  const rowsOf = async () => {
    const { file, size } = await snapshots.take();
    const content = await file.readFile();
    await file.close();
    expect(content.length).toBe(size);
    const path = join(folder, "content.db");
    writeFileSync(path, content);
    return usersIn(path);
  };
  return { folder, client, snapshots, rowsOf };
}

test("a snapshot waits for an open transaction, and contains all of it", async () => {
  const { client, rowsOf, folder } = await opened();
  const other = await opened();
  let taken: Promise<unknown[]> | undefined;
  await client.$transaction(async (tx) => {
    await tx.user.create({ data: user("ann") });
    taken = rowsOf();
    // A snapshot of another database, which was started later, has ended. If the first snapshot did not wait for the
    // open transaction, it would have ended too.
    await other.rowsOf();
    await tx.user.create({ data: user("bob") });
  });
  expect(await taken).toEqual(["ann", "bob"]);
  expect(readdirSync(folder).filter((name) => name.includes("snapshot"))).toEqual([]);
});

test("concurrent snapshots are complete, and replace the file that a killed process left", async () => {
  const { client, snapshots, folder } = await opened();
  await client.user.create({ data: user("ann") });
  writeFileSync(join(folder, "test.db.snapshot"), "cut off");
  const all = await Promise.all([snapshots.take(), snapshots.take(), snapshots.take()]);
  for (const { file, size } of all) {
    expect((await file.readFile()).subarray(0, 15).toString()).toBe("SQLite format 3");
    expect(size).toBeGreaterThan(0);
    await file.close();
  }
  expect(existsSync(join(folder, "test.db.snapshot"))).toBe(false);
});

test("counts changes after a snapshot", async () => {
  const { client, snapshots } = await opened();
  await client.user.create({ data: user("ann") });
  const { file, changes } = await snapshots.take();
  await file.close();
  expect(await snapshots.changes()).toBe(changes);
  await client.user.create({ data: user("bob") });
  await client.user.findMany();
  expect(await snapshots.changes()).toBe(changes + 1);
});
