import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openDatabase } from "../../../server/db/openDatabase.ts";
import { call } from "../../support/call.ts";
import { testFolder } from "../../support/folder.ts";
import { callServerCommand } from "../../support/serverCommand.ts";
import { runServerCommand, type TestService, testService } from "../../support/service.ts";
import { expectFailure } from "../process/failure.ts";
import { connect, emptyDatabase } from "./clients.ts";

/** Settings of a service on SQLite. The other tests in this folder start services on PostgreSQL. */
const SQLITE = { GATEHOUSE_DATABASE_URL: "" };

const start = (dataDir: string, env: Record<string, string>) => testService({ dataDir, env });

const migrate = (dataDir: string, env: Record<string, string>, ...more: string[]) =>
  callServerCommand(["migrate-to-postgresql", "--data-dir", dataDir, ...more], { env });

const login = async (service: TestService, body: object): Promise<string> =>
  (await call(service, "POST /api/login", { body })).body.token;
const accepts = async (service: TestService, token: string) =>
  (await call(service, "GET /api/auth/user", { token })).status === 200;

test("a stopped service continues with its data and logins on PostgreSQL", { tags: ["long"] }, async () => {
  const dataDir = testFolder();
  const before = await start(dataDir, SQLITE);
  const token = await login(before, await before.setup());
  await before.stop();

  // The database URL contains a password, so the command reads the URL from a file. No output contains the password.
  const url = new URL(await emptyDatabase());
  url.password = "pa55word";
  const file = join(testFolder(), "url");
  writeFileSync(file, `${url}\n`);
  // Runs this command in a separate process, as an operator does. The later commands run in the test's process.
  const args = ["migrate-to-postgresql", "--data-dir", dataDir];
  const moved = await runServerCommand(args, { env: { GATEHOUSE_TARGET_DATABASE_URL_FILE: file } });
  expect(moved).toMatchObject({ code: 0, stderr: "" });
  expect(moved.stdout).toMatch(/^TABLE +ROWS$/m);
  expect(moved.stdout).toMatch(/^User +1$/m);
  expect(moved.stdout).toMatch(/^Device +0$/m);
  expect(moved.stdout).toContain("every instance needs the same secret");
  expect(moved.stdout).not.toContain("pa55word");

  const after = await start(dataDir, { GATEHOUSE_DATABASE_URL: url.toString() });
  expect(await accepts(after, token)).toBe(true);
  await after.stop();

  const again = await migrate(dataDir, { GATEHOUSE_TARGET_DATABASE_URL_FILE: file });
  expectFailure(again, "is not empty");
  expect(again.stderr).not.toContain("pa55word");
});

test("copies a snapshot of a running service, and reports the missing rows", async () => {
  const dataDir = testFolder();
  const service = await start(dataDir, SQLITE);
  const user = await service.setup();
  const quiet = await migrate(dataDir, { GATEHOUSE_TARGET_DATABASE_URL: await emptyDatabase() });
  expect(quiet).toMatchObject({ code: 0, stderr: "" });
  expect(quiet.stdout).toContain("stop it and run this command again with an empty database");

  // Locks a table of the target database, so that the migration waits. Meanwhile, the service writes to the source
  // database.
  const url = await emptyDatabase();
  await (await openDatabase({ url, connections: 2 })).close();
  const blocker = await connect(url);
  await blocker.query('BEGIN; LOCK TABLE "User"');
  const running = migrate(dataDir, { GATEHOUSE_TARGET_DATABASE_URL: url });
  // The server also has the databases of other tests.
  const locks = "SELECT 1 FROM pg_locks JOIN pg_database ON pg_database.oid = database";
  const waiting = async () =>
    (await blocker.query(`${locks} WHERE NOT granted AND datname = current_database()`)).rowCount;
  await expect.poll(waiting, { timeout: 60_000 }).toBe(1);
  await service.createUser({ username: "late", password: "hunter22" });
  await blocker.query("COMMIT");
  const incomplete = await running;
  expect(incomplete.code).toBe(3);
  expect(incomplete.stdout).toMatch(/^User +1$/m);
  expect(incomplete.stderr).toMatch(
    /^gatehouse-server: The copy lacks \d+ rows that the service wrote during the copy\.\n$/,
  );
  expect(readdirSync(dataDir).filter((name) => name.includes("migrating"))).toEqual([]);
  expect(await accepts(service, await login(service, user))).toBe(true);
});

test.each<[string, Record<string, string>, string]>([
  ["no target", {}, "GATEHOUSE_TARGET_DATABASE_URL is not set. Set it to postgresql://"],
  [
    "a target that is not PostgreSQL",
    { GATEHOUSE_TARGET_DATABASE_URL: "mysql://gate:pa55word@db/gate" },
    "GATEHOUSE_TARGET_DATABASE_URL has an invalid value",
  ],
  [
    "no database",
    { GATEHOUSE_TARGET_DATABASE_URL: "postgresql://gate:pa55word@127.0.0.1:1/gate" },
    "does not exist. Check --data-dir and GATEHOUSE_DATABASE_URL.",
  ],
  [
    "a service on PostgreSQL",
    { GATEHOUSE_DATABASE_URL: "postgresql://gate:pa55word@127.0.0.1:1/gate" },
    "already uses PostgreSQL",
  ],
])("rejects %s", async (_case, env, reason) => {
  const dataDir = testFolder();
  const refused = await migrate(dataDir, env);
  expectFailure(refused, reason);
  expect(refused.stderr).not.toContain("pa55word");
  expect(readdirSync(dataDir)).toEqual([]);
});

test("rejects an argument with the address", async () => {
  const refused = await migrate(testFolder(), {}, "--target", "postgresql://gate@db/gate");
  expect(refused.code).toBe(2);
});

test("rejects the backup of a service on PostgreSQL, and refers to PostgreSQL's own programs, the secret and the host key", async () => {
  const dataDir = testFolder();
  await start(dataDir, { GATEHOUSE_DATABASE_URL: await emptyDatabase() });
  const file = join(testFolder(), "copy.db");
  const refused = await callServerCommand(["backup", file, "--data-dir", dataDir]);
  expectFailure(refused, "`pg_dump ");
  expect(refused.stderr).toContain(
    `Also copy the instance secret (${join(dataDir, "secret")}) and the SSH host key ` +
      `(${join(dataDir, "ssh_host_ed25519_key")})\n`,
  );
});
