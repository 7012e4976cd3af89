import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { call } from "../../support/call.ts";
import { makeDataDir } from "../../support/dataFolder.ts";
import { testFolder } from "../../support/folder.ts";
import { callServerCommand } from "../../support/serverCommand.ts";
import { runServerCommand, startService, type TestService, testService } from "../../support/service.ts";

const ann = { username: "ann", password: "hunter22" };
/** A folder that contains the service's secret and a backup. The backup contains the user ann. */
let kept: string;
const backup = () => join(kept, "backup.db");

beforeAll(async () => {
  kept = await makeDataDir();
  const service = await startService();
  await service.createUser(ann);
  await callServerCommand(["backup", backup(), "--data-dir", service.dataDir]);
  copyFileSync(join(service.dataDir, "secret"), join(kept, "secret"));
  await service.stop();
});
afterAll(() => rm(kept, { recursive: true }));

/** Creates a data folder as an operator prepares it after a loss of data. */
function freshFolder(): string {
  const dataDir = testFolder();
  copyFileSync(join(kept, "secret"), join(dataDir, "secret"));
  chmodSync(join(dataDir, "secret"), 0o600);
  return dataDir;
}

const restore = (file: string, dataDir: string) =>
  callServerCommand(["restore", file, "--data-dir", dataDir]);

function usersIn(file: string): unknown[] {
  const sqlite = new Sqlite(file, { readonly: true });
  try {
    return sqlite.prepare('SELECT "username" FROM "User" ORDER BY 1').pluck().all();
  } finally {
    sqlite.close();
  }
}

const login = async (service: TestService) => (await call(service, "POST /api/login", { body: ann })).status;

test("a service continues with the data of a backup", async () => {
  const dataDir = freshFolder();
  // Runs this command in a separate process, as an operator does. The later commands run in the test's process.
  const { code, stdout, stderr } = await runServerCommand(["restore", backup(), "--data-dir", dataDir]);
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout).toContain(": 1 users, 0 namespaces, 0 devices.\n");
  expect(stdout).toContain("rotate-signing-key --revoke");
  expect(stdout).not.toContain("The previous database");
  expect(readdirSync(dataDir).sort()).toEqual(["gatehouse.db", "secret"]);
  expect(statSync(join(dataDir, "gatehouse.db")).mode & 0o777).toBe(0o600);
  expect(await login(await testService({ dataDir }))).toBe(200);
});

test("keeps the previous database, with all acknowledged writes", async () => {
  const dataDir = freshFolder();
  const first = await startService({ dataDir });
  await first.createUser({ username: "bob", password: "hunter22" });
  // After the kill, only the write-ahead log contains the user.
  await first.kill();
  const { code, stdout } = await restore(backup(), dataDir);
  expect(code).toBe(0);
  const before = /^The previous database is in (.*)\.$/m.exec(stdout)?.[1] ?? "";
  expect(usersIn(before)).toEqual(["bob"]);
  expect(usersIn(join(dataDir, "gatehouse.db"))).toEqual(["ann"]);
});

test("moves a damaged database and its companion files away before it restores the backup", async () => {
  const dataDir = freshFolder();
  const database = join(dataDir, "gatehouse.db");
  writeFileSync(database, "This is no database, and long enough to be taken for a header. ".repeat(50));
  for (const suffix of ["-wal", "-shm", "-journal"]) writeFileSync(database + suffix, "of the damaged one");
  expect((await restore(backup(), dataDir)).code).toBe(0);
  const names = readdirSync(dataDir);
  expect(names.filter((name) => name.startsWith("gatehouse.db-"))).toEqual([]);
  const before = names.find((name) => /before-restore-[^-]+-\d\d-[^-]+Z$/.test(name)) ?? "";
  expect(readFileSync(join(dataDir, before), "utf8")).toContain("This is no database");
  expect(usersIn(database)).toEqual(["ann"]);
});

describe("a service on an emptied database", () => {
  const serve = (dataDir: string) => callServerCommand(["serve", "--data-dir", dataDir, "--port", "0"]);

  test("does not start next to a secret, until a backup is restored", async () => {
    const dataDir = freshFolder();
    const database = join(dataDir, "gatehouse.db");
    writeFileSync(database, "");
    const refused = await serve(dataDir);
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toBe(
      `gatehouse-server: The database ${database} is empty (0 bytes), but a service has run here. Restore a ` +
        `backup with \`gatehouse-server restore <file> --data-dir ${dataDir}\`. ` +
        "If no data ever existed, remove the empty file\n",
    );
    expect(readdirSync(dataDir).sort()).toEqual(["gatehouse.db", "secret"]);
    expect(statSync(database).size).toBe(0);
    expect((await restore(backup(), dataDir)).code).toBe(0);
    expect(usersIn(database)).toEqual(["ann"]);
  });

  test("does not start next to a write-ahead log, which SQLite would delete", async () => {
    const dataDir = testFolder();
    writeFileSync(join(dataDir, "gatehouse.db"), "");
    writeFileSync(join(dataDir, "gatehouse.db-wal"), "what is not in the database yet");
    expect((await serve(dataDir)).stderr).toContain("is empty (0 bytes)");
    expect(statSync(join(dataDir, "gatehouse.db-wal")).size).toBeGreaterThan(0);
  });

  test("starts if nothing indicates earlier data", async () => {
    // A service that ends immediately at its first start leaves this empty file.
    const dataDir = testFolder();
    writeFileSync(join(dataDir, "gatehouse.db"), "");
    await (await startService({ dataDir })).stop();
    expect(statSync(join(dataDir, "gatehouse.db")).size).toBeGreaterThan(0);
  });
});

describe("a rejected restore changes nothing", () => {
  test("while a service runs, whatever its database is", async () => {
    const service = await testService();
    const refused = await restore(backup(), service.dataDir);
    expect(refused).toEqual({
      code: 1,
      stdout: "",
      stderr: `gatehouse-server: A service runs on the data folder ${service.dataDir}. Stop it first.\n`,
    });
    const elsewhere = freshFolder();
    const url = `file:${join(service.dataDir, "gatehouse.db")}`;
    const restoring = ["restore", backup(), "--data-dir", elsewhere, "--database-url", url];
    const locked = await callServerCommand(restoring);
    expect([locked.code, locked.stderr]).toEqual([
      1,
      expect.stringContaining("is in use by another process"),
    ]);
    expect((await service.admin(["user", "list", "--json"])).stdout).toBe("[]\n");
    expect(readdirSync(service.dataDir).filter((name) => name.includes("restor"))).toEqual([]);
  });

  const secret = "another secret than that of the backup, long enough";
  const prepared = (change: (file: string) => void) => (folder: string) => {
    const file = join(folder, "changed.db");
    copyFileSync(backup(), file);
    change(file);
    return file;
  };
  const sql = (statement: string) =>
    prepared((file) => {
      const sqlite = new Sqlite(file);
      sqlite.pragma("foreign_keys = OFF");
      sqlite.exec(statement);
      sqlite.close();
    });

  test.each<[string, (folder: string) => string, string]>([
    ["a missing file", (folder) => join(folder, "none.db"), "none.db: it does not exist."],
    [
      "a text",
      prepared((file) => writeFileSync(file, "text ".repeat(500))),
      "is not an intact SQLite database",
    ],
    ["an empty file", prepared((file) => truncateSync(file)), "is not a database of the service"],
    [
      "a truncated file",
      prepared((file) => truncateSync(file, statSync(file).size - 20_000)),
      "changed.db is ",
    ],
    ["another database", sql('DROP TABLE "_migration"'), "is not a database of the service"],
    [
      "a database of a newer version",
      sql(`INSERT INTO "_migration" VALUES ('9999_future', '-', '-')`),
      "newer version of the service",
    ],
    [
      "a database with a broken reference",
      sql(`INSERT INTO "RecoveryCode" ("userId", "digest") VALUES ('missing', 'x')`),
      "a row of RecoveryCode refers to a missing row of User",
    ],
    [
      "a raw copy of a database in use",
      prepared((file) => writeFileSync(`${file}-wal`, "x")),
      "Copy the database with `gatehouse-server backup`",
    ],
  ])("for %s", async (_case, make, reason) => {
    const dataDir = freshFolder();
    writeFileSync(join(dataDir, "gatehouse.db"), "the present one");
    const refused = await restore(make(testFolder()), dataDir);
    expect(refused).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining(reason) });
    expect(refused.stderr).toMatch(/^gatehouse-server: [^\n]+\n$/);
    expect(readdirSync(dataDir).sort()).toEqual(["gatehouse.db", "secret"]);
    expect(readFileSync(join(dataDir, "gatehouse.db"), "utf8")).toBe("the present one");
  });

  test("without the secret, and with another secret", async () => {
    const dataDir = join(testFolder(), "data");
    mkdirSync(dataDir, { mode: 0o700 });
    const without = await restore(backup(), dataDir);
    expect(without.stderr).toContain(`The data folder ${dataDir} has no instance secret`);
    const other = await callServerCommand(["restore", backup(), "--data-dir", dataDir], {
      env: { GATEHOUSE_SECRET: secret },
    });
    expect(other.stderr).toContain("was written with a different instance secret");
    expect(other.stderr).not.toContain(secret);
    expect([without.code, other.code, readdirSync(dataDir)]).toEqual([1, 1, []]);
  });

  test("if the data is in PostgreSQL", async () => {
    const refused = await callServerCommand(["restore", backup(), "--data-dir", testFolder()], {
      env: { GATEHOUSE_DATABASE_URL: "postgresql://gate:pa55word@db/gate" },
    });
    expect(refused).toEqual({
      code: 1,
      stdout: "",
      stderr: "gatehouse-server: The service uses PostgreSQL. Restore the database with `pg_restore`.\n",
    });
  });
});
