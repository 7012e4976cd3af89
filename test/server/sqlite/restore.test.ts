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
import { RestoredHostKey } from "../../../server/cli/RestoredHostKey.ts";
import { readBackup } from "../../../server/files/backupFile.ts";
import { streamDurably } from "../../../server/files/durableFile.ts";
import { OperatorError } from "../../../server/OperatorError.ts";
import { type HostKey, readHostKey } from "../../../server/secrets/hostKey.ts";
import { sealerOf } from "../../../server/secrets/sealer.ts";
import { call } from "../../support/call.ts";
import { makeDataDir } from "../../support/dataFolder.ts";
import { testFolder } from "../../support/folder.ts";
import { callServerCommand } from "../../support/serverCommand.ts";
import { runServerCommand, startService, type TestService, testService } from "../../support/service.ts";
import { expectFailure } from "../process/failure.ts";
import { usersIn } from "./usersIn.ts";

const ann = { username: "ann", password: "hunter22" };
/** A folder that contains the service's secret, a backup and its database. The backup contains the user ann. */
let kept: string;
const backup = () => join(kept, "gatehouse.backup");
/** The database of the backup alone, as earlier versions wrote it. */
const databaseAlone = () => join(kept, "backup.db");

beforeAll(async () => {
  kept = await makeDataDir();
  const service = await startService();
  await service.createUser(ann);
  await callServerCommand(["backup", backup(), "--data-dir", service.dataDir]);
  await readBackup(backup(), (content) => streamDurably(databaseAlone(), content));
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

const secretOf = (folder: string): string => readFileSync(join(folder, "secret"), "utf8").trim();

const restore = (file: string, dataDir: string) =>
  callServerCommand(["restore", file, "--data-dir", dataDir]);

const login = async (service: TestService) => (await call(service, "POST /api/login", { body: ann })).status;

test("a service continues with the data of a backup", { tags: ["long"] }, async () => {
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

test("keeps the previous database, with all acknowledged writes", { tags: ["long"] }, async () => {
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

  test("starts if nothing indicates earlier data", { tags: ["long"] }, async () => {
    // A service that ends immediately at its first start leaves this empty file.
    const dataDir = testFolder();
    writeFileSync(join(dataDir, "gatehouse.db"), "");
    await (await startService({ dataDir })).stop();
    expect(statSync(join(dataDir, "gatehouse.db")).size).toBeGreaterThan(0);
  });
});

describe("a rejected restore changes nothing", () => {
  test("while a service runs, whatever its database is", { tags: ["long"] }, async () => {
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
    expectFailure(await callServerCommand(restoring), "is in use by another process");
    expect((await service.admin(["user", "list", "--json"])).stdout).toBe("[]\n");
    expect(readdirSync(service.dataDir).filter((name) => name.includes("restor"))).toEqual([]);
  });

  const secret = "another secret than that of the backup, long enough";
  const prepared = (change: (file: string) => void) => (folder: string) => {
    const file = join(folder, "changed.db");
    copyFileSync(databaseAlone(), file);
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
      "is not a backup. Use a file that",
    ],
    ["an empty file", prepared((file) => truncateSync(file)), "is not a backup. Use a file that"],
    [
      "a backup with a changed byte",
      prepared((file) => {
        const bytes = readFileSync(backup());
        const position = bytes.indexOf("ann@example.com");
        bytes[position] = "b".charCodeAt(0);
        writeFileSync(file, bytes);
      }),
      "is damaged: its content does not match its checksum",
    ],
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
    expectFailure(refused, reason);
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
    expect(other.stderr).toMatch(
      /was written with a different instance secret: [0-9a-f]{16} \([^ ]*secret\), not [0-9a-f]{16}\. Provide/,
    );
    const alone = await callServerCommand(["restore", databaseAlone(), "--data-dir", dataDir], {
      env: { GATEHOUSE_SECRET: secret },
    });
    expect(alone.stderr).toContain("was written with a different instance secret");
    expect(other.stderr + alone.stderr).not.toContain(secret);
    expect([without.code, other.code, alone.code, readdirSync(dataDir)]).toEqual([1, 1, 1, []]);
  });

  test("if the data is in PostgreSQL", async () => {
    const refused = await callServerCommand(["restore", backup(), "--data-dir", testFolder()], {
      env: { GATEHOUSE_DATABASE_URL: "postgresql://gate:pa55word@db/gate" },
    });
    expect(refused).toEqual({
      code: 1,
      stdout: "",
      stderr:
        "gatehouse-server: The service uses PostgreSQL. Restore the database with `pg_restore`, and copy the instance " +
        "secret and the SSH host key of the service to this host.\n",
    });
  });
});

describe("the SSH host key of a backup", () => {
  const FILE = "ssh_host_ed25519_key";
  /** The backup of a service that serves SSH, and the host key of this service. */
  let keyed: { readonly file: string; readonly key: HostKey };
  beforeAll(async () => {
    const flags = ["--ssh-port", "0", "--ssh-host", "127.0.0.1"];
    const env = {
      GATEHOUSE_SECRET: secretOf(kept),
      GATEHOUSE_INTERNAL_TOKEN: "an-internal-token-of-the-backed-up-service",
    };
    const service = await startService({ flags, env });
    const file = join(kept, "keyed.backup");
    const { code, stderr } = await callServerCommand(["backup", file, "--data-dir", service.dataDir]);
    expect([code, stderr]).toEqual([0, ""]);
    keyed = { file, key: readHostKey(service.dataDir, undefined) };
    await service.stop();
  });
  const restoreKeyed = (dataDir: string, env: Readonly<Record<string, string>> = {}) =>
    callServerCommand(["restore", keyed.file, "--data-dir", dataDir], {
      env: { GATEHOUSE_INTERNAL_TOKEN: "an-internal-token-of-the-backed-up-service", ...env },
    });

  test("is restored on a new host", async () => {
    const dataDir = freshFolder();
    const { code, stdout, stderr } = await restoreKeyed(dataDir);
    expect([code, stderr]).toEqual([0, ""]);
    const file = join(dataDir, FILE);
    expect(stdout).toContain(`Restored the SSH host key ${keyed.key.fingerprint} to ${file}.\n`);
    expect(readHostKey(dataDir, undefined)).toEqual(keyed.key);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readdirSync(dataDir).sort()).toEqual(["gatehouse.db", "secret", FILE]);
    // The file is not written again if it already contains the key.
    const written = statSync(file).ino;
    expect((await restoreKeyed(dataDir)).code).toBe(0);
    expect(statSync(file).ino).toBe(written);
  });

  test("replaces the key that the first start on the host created, and keeps that key", async () => {
    const dataDir = freshFolder();
    const first = readHostKey(dataDir, undefined);
    const { code, stdout, stderr } = await restoreKeyed(dataDir);
    expect([code, stderr]).toEqual([0, ""]);
    const before = /^The previous SSH host key \((.*)\) is in (.*)\.$/m.exec(stdout) ?? [];
    expect(before[1]).toBe(first.fingerprint);
    expect(readFileSync(before[2] ?? "", "utf8")).toBe(first.pem);
    expect(readHostKey(dataDir, undefined)).toEqual(keyed.key);
  });

  test("if it cannot be installed, the restore reports that the database is restored, and what to do", async () => {
    const dataDir = freshFolder();
    const { pem } = readHostKey(dataDir, undefined);
    const manifest = await readBackup(keyed.file, (content) =>
      streamDurably(join(testFolder(), "copy"), content),
    );
    const target = { dataDir, configured: undefined, time: "now" };
    const key = new RestoredHostKey(manifest, sealerOf(secretOf(kept)), target);
    key.stage();
    mkdirSync(join(dataDir, `${FILE}.before-restore-now`));
    expect(() => key.install("Restored a from b.")).toThrow(OperatorError);
    expect(() => key.install("Restored a from b.")).toThrow(
      /^Restored a from b\. The SSH host key of the backup is not installed: .*\. Remove the cause, and restore/,
    );
    expect(readHostKey(dataDir, undefined).pem).toBe(pem);
    key.dispose();
    expect(readdirSync(dataDir).sort()).toEqual(["secret", FILE, `${FILE}.before-restore-now`]);
  });

  test("does not replace a configured key, and the restore warns about a different or missing one", async () => {
    const [dataDir, other] = [freshFolder(), testFolder()];
    const { pem, fingerprint } = readHostKey(other, undefined);
    const configured = join(other, FILE);
    const { code, stderr } = await restoreKeyed(dataDir, { GATEHOUSE_SSH_HOST_KEY_FILE: configured });
    expect(code).toBe(0);
    expect(stderr).toBe(
      `gatehouse-server: Warning: GATEHOUSE_SSH_HOST_KEY_FILE refers to ${configured} (${fingerprint}), not to the SSH ` +
        `host key of the backup (${keyed.key.fingerprint}). SSH clients that know the earlier key then report that the ` +
        `host key has changed. Unset GATEHOUSE_SSH_HOST_KEY_FILE, or copy ${join(dataDir, FILE)} to ${configured}.\n`,
    );
    expect(readFileSync(configured, "utf8")).toBe(pem);
    const missing = await restoreKeyed(dataDir, { GATEHOUSE_SSH_HOST_KEY_FILE: join(other, "none") });
    expect(missing.stderr).toContain(
      `${join(other, "none")} (the file does not exist), not to the SSH host key`,
    );
    copyFileSync(join(dataDir, FILE), configured);
    expect((await restoreKeyed(dataDir, { GATEHOUSE_SSH_HOST_KEY_FILE: configured })).stderr).toBe("");
  });

  test("if it is missing because an earlier version wrote the backup, the restore warns with the consequence", async () => {
    const dataDir = freshFolder();
    const file = join(dataDir, FILE);
    const { code, stderr } = await restore(databaseAlone(), dataDir);
    expect(code).toBe(0);
    expect(stderr).toBe(
      "gatehouse-server: Warning: An earlier version wrote the backup, without a checksum. Damage inside a value is not " +
        "detected.\n" +
        "gatehouse-server: Warning: The backup contains no SSH host key. The next start creates a new key. SSH clients " +
        "that know the earlier key then report that the host key has changed. " +
        `Copy the file ${FILE} of the backed-up service to ${file} before the start.\n`,
    );
    const { fingerprint } = readHostKey(dataDir, undefined);
    const again = await restore(databaseAlone(), dataDir);
    expect(again.stderr).toContain(`The service uses its present key ${file} (${fingerprint}). SSH clients`);
  });

  test("is restored with a warning about the settings that are not set on the new host", async () => {
    const { code, stderr } = await callServerCommand(["restore", keyed.file, "--data-dir", freshFolder()]);
    expect(code).toBe(0);
    expect(stderr).toBe(
      "gatehouse-server: Warning: Check that these settings are set for the service on this host: " +
        "GATEHOUSE_INTERNAL_TOKEN. The backed-up service used them, and they and their files are not in the backup.\n",
    );
  });
});
