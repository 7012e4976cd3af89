import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { DatabaseError } from "../../../server/db/DatabaseError.ts";
import {
  migrationsFolder,
  migrationOf as readMigration,
  readMigrations,
} from "../../../server/db/migrations/migrations.ts";
import { difference } from "../../../server/db/migrations/schemas.ts";
import { migrateSqlite } from "../../../server/db/sqlite/migrate.ts";
import { openSqlite } from "../../../server/db/sqlite/open.ts";
import { testFolder } from "../../support/folder.ts";
import { OLD_RECORDINGS } from "../db/oldRecordings.ts";

/** Returns a migration beside which no older instance may run. */
const migrationOf = (name: string, sql: string) => readMigration(name, `-- oldest-beside: ${name}\n${sql}`);

const tables = migrationOf(
  "0001_tables",
  `CREATE TABLE "Parent" ("id" TEXT PRIMARY KEY, "note" TEXT);
   CREATE TABLE "Child" ("id" TEXT PRIMARY KEY, "parent" TEXT NOT NULL REFERENCES "Parent" ("id") ON DELETE CASCADE);`,
);

/** A migration in the form in which Prisma's engine changes a column of a SQLite table. */
const rebuild = migrationOf(
  "0002_rebuild",
  `PRAGMA defer_foreign_keys=ON;
   PRAGMA foreign_keys=OFF;
   CREATE TABLE "new_Parent" ("id" TEXT PRIMARY KEY, "note" TEXT NOT NULL DEFAULT '');
   INSERT INTO "new_Parent" ("id", "note") SELECT "id", coalesce("note", '') FROM "Parent";
   DROP TABLE "Parent";
   ALTER TABLE "new_Parent" RENAME TO "Parent";
   PRAGMA foreign_keys=ON;
   PRAGMA defer_foreign_keys=OFF;`,
);

function open() {
  const sqlite = openSqlite(join(testFolder(), "test.db"));
  onTestFinished(() => void sqlite.close());
  return sqlite;
}

function withRows() {
  const sqlite = open();
  migrateSqlite(sqlite, [tables]);
  sqlite.exec(`INSERT INTO "Parent" VALUES ('p', NULL); INSERT INTO "Child" VALUES ('c1', 'p'), ('c2', 'p')`);
  return sqlite;
}

const childrenOf = (sqlite: ReturnType<typeof open>) =>
  sqlite.prepare('SELECT count(*) FROM "Child"').pluck().get();

test("in a transaction with foreign keys on, the rebuild of a table deletes the rows that refer to it", () => {
  const sqlite = withRows();
  sqlite.transaction(() => sqlite.exec(rebuild.sql))();
  expect(childrenOf(sqlite)).toBe(0);
});

test("a migration that rebuilds a table keeps the rows that refer to it", () => {
  const sqlite = withRows();
  expect(migrateSqlite(sqlite, [tables, rebuild])).toEqual(["0002_rebuild"]);
  expect(childrenOf(sqlite)).toBe(2);
  expect(sqlite.pragma("foreign_keys", { simple: true })).toBe(1);
  expect(() => sqlite.exec(`INSERT INTO "Child" VALUES ('c3', 'missing')`)).toThrow("FOREIGN KEY");
});

test("each migration is applied once", () => {
  const sqlite = open();
  expect(migrateSqlite(sqlite, [tables, rebuild])).toEqual(["0001_tables", "0002_rebuild"]);
  expect(migrateSqlite(sqlite, [tables, rebuild])).toEqual([]);
});

test("keeps a copy of the data before a migration", () => {
  const sqlite = withRows();
  migrateSqlite(sqlite, [tables, rebuild]);
  const copy = openSqlite(`${sqlite.name}.before-0002_rebuild`);
  onTestFinished(() => void copy.close());
  expect(childrenOf(copy)).toBe(2);
  expect(copy.prepare('SELECT name FROM "_migration"').pluck().all()).toEqual(["0001_tables"]);
});

test("a new database leaves no copy", () => {
  const sqlite = open();
  migrateSqlite(sqlite, [tables]);
  expect(existsSync(`${sqlite.name}.before-0001_tables`)).toBe(false);
});

test("undoes a migration that fails halfway, and can migrate afterwards", () => {
  const sqlite = withRows();
  const failing = migrationOf(
    "0002_fails",
    `DELETE FROM "Child"; ALTER TABLE "Nothing" ADD COLUMN "x" TEXT;`,
  );
  expect(() => migrateSqlite(sqlite, [tables, failing])).toThrow(
    /0002_fails .* failed: no such table: Nothing/,
  );
  expect(childrenOf(sqlite)).toBe(2);
  expect(migrateSqlite(sqlite, [tables, rebuild])).toEqual(["0002_rebuild"]);
});

test("rejects a migration that would leave references to missing rows", () => {
  const sqlite = withRows();
  const orphaning = migrationOf("0002_orphans", `DELETE FROM "Parent";`);
  expect(() => migrateSqlite(sqlite, [tables, orphaning])).toThrow(
    "2 rows would refer to missing rows, the first from Child to Parent",
  );
  expect(sqlite.prepare('SELECT count(*) FROM "Parent"').pluck().get()).toBe(1);
});

test("rejects a database of a newer version, and does not change it", () => {
  const sqlite = open();
  migrateSqlite(sqlite, [tables, rebuild]);
  expect(() => migrateSqlite(sqlite, [tables])).toThrow(DatabaseError);
  expect(() => migrateSqlite(sqlite, [tables])).toThrow(/newer version.*0002_rebuild/);
});

test("rejects a migration that was changed after it was applied", () => {
  const sqlite = open();
  migrateSqlite(sqlite, [tables]);
  const changed = migrationOf("0001_tables", `${tables.sql} SELECT 1;`);
  expect(() => migrateSqlite(sqlite, [changed])).toThrow(
    /0001_tables of this version differs from the migration that/,
  );
  const commented = migrationOf("0001_tables", `-- A comment.\n${tables.sql} -- changed`);
  expect(migrateSqlite(sqlite, [commented])).toEqual([]);
});

test("the package's migrations create tables without broken references", () => {
  const sqlite = open();
  migrateSqlite(sqlite, readMigrations(migrationsFolder("sqlite")));
  expect(sqlite.pragma("integrity_check", { simple: true })).toBe("ok");
});

/** Returns the tables of a database with their columns, foreign keys and indexes, each sorted by name. */
function tablesOf(sqlite: ReturnType<typeof open>) {
  const names = sqlite
    .prepare(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE '\\_%' ESCAPE '\\' ORDER BY name",
    )
    .pluck()
    .all() as string[];
  const sorted = (rows: unknown) => (rows as object[]).map((row) => JSON.stringify(row)).sort();
  return names.map((name) => ({
    name,
    columns: sorted(
      sqlite.prepare('SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_xinfo(?)').all(name),
    ),
    references: sorted(
      sqlite
        .prepare('SELECT "table", "from", "to", on_update, on_delete FROM pragma_foreign_key_list(?)')
        .all(name),
    ),
    indexes: sorted(
      sqlite.prepare("SELECT sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = ?").all(name),
    ),
  }));
}

test("the migrations create the tables of the models", async () => {
  const [migrated, created] = [open(), open()];
  migrateSqlite(migrated, readMigrations(migrationsFolder("sqlite")));
  created.exec(await difference("sqlite", undefined));
  expect(tablesOf(created).length).toBeGreaterThan(20);
  expect(tablesOf(migrated), "run `node server/db/migrations/diff.ts <name>`").toEqual(tablesOf(created));
});

const read = (path: string) => readFileSync(new URL(`../../../server/db/${path}`, import.meta.url), "utf8");

// SQLite integers always have 64 bits. A 32-bit INTEGER of PostgreSQL could not store times after 2038.
test.each(["sqlite", "postgresql"])("the expiry of API keys has 64 bits on %s", (database) => {
  expect(read(`migrations/${database}/0001_initial.sql`)).toMatch(/"expiresIn" BIGINT NOT NULL/);
});

test("tags keep their devices, keys and rules when they become rows", () => {
  const sqlite = open();
  const migrations = readMigrations(migrationsFolder("sqlite"));
  const first = migrations.findIndex(({ name }) => name === "0005_tags");
  migrateSqlite(sqlite, migrations.slice(0, first));
  const at = "2026-01-02T03:04:05.678+00:00";
  sqlite.exec(`
    INSERT INTO "User" ("id", "username", "name", "email", "passwordHash", "createdAt")
      VALUES ('ana', 'ana', 'ana', 'ana@example.com', '-', '${at}');
    INSERT INTO "Namespace" ("tenantId", "name", "ownerId", "createdAt")
      VALUES ('t', 'lab', 'ana', '${at}'), ('u', 'home', 'ana', '${at}');
    INSERT INTO "Device" ("uid", "tenantId", "name", "mac", "infoId", "infoPrettyName", "infoVersion", "infoArch",
        "infoPlatform", "publicKey", "statusUpdatedAt", "createdAt", "lastSeen")
      VALUES ('d', 't', 'd', '', '', '', '', '', '', '', '${at}', '${at}', '${at}'),
        ('e', 'u', 'e', '', '', '', '', '', '', '', '${at}', '${at}', '${at}');
    INSERT INTO "PublicKey" ("tenantId", "fingerprint", "name", "data", "username", "createdAt")
      VALUES ('t', 'f', 'key', '', '', '${at}');
    INSERT INTO "FirewallRule" ("id", "tenantId", "action", "active", "priority", "sourceIp", "username")
      VALUES (1, 't', 'deny', 1, 1, '', '');
    INSERT INTO "DeviceTag" VALUES ('d', 't', 'edge', 1, 'key'), ('d', 't', 'core', 0, NULL), ('e', 'u', 'edge', 0, NULL);
    INSERT INTO "PublicKeyTag" VALUES ('t', 'f', 'edge', 0);
    INSERT INTO "FirewallRuleTag" VALUES ('t', 1, 'only-rule', 0);`);
  migrateSqlite(sqlite, migrations);
  const read = (query: string) => sqlite.prepare(query).raw().all();
  expect(read('SELECT * FROM "DeviceTag" ORDER BY "deviceUid", "position"')).toEqual([
    ["d", "t", "core", 0, null],
    ["d", "t", "edge", 1, "key"],
    ["e", "u", "edge", 0, null],
  ]);
  expect(read('SELECT * FROM "PublicKeyTag"')).toEqual([["t", "f", "edge", 0]]);
  expect(read('SELECT * FROM "FirewallRuleTag"')).toEqual([["t", 1, "only-rule", 0]]);
  expect(read('SELECT "tenantId", "name" FROM "Tag" ORDER BY 1, 2')).toEqual([
    ["t", "core"],
    ["t", "edge"],
    ["t", "only-rule"],
    ["u", "edge"],
  ]);
});

test("the sizes of recordings begin with the sizes of the existing recordings", () => {
  const sqlite = open();
  const migrations = readMigrations(migrationsFolder("sqlite"));
  const sizes = migrations.findIndex(({ name }) => name === "0008_recording_sizes");
  migrateSqlite(sqlite, migrations.slice(0, sizes));
  sqlite.exec(OLD_RECORDINGS);
  migrateSqlite(sqlite, migrations);
  const read = () => sqlite.prepare('SELECT "tenantId", "slot", "size" FROM "RecordingSize"').raw().all();
  expect(read()).toEqual([["t", 0, 5_000_000_000]]);
  sqlite.exec(`UPDATE "Session" SET "recorded" = false WHERE "uid" = 's1'`);
  expect(read()).toEqual([["t", 0, 3_000_000_000]]);
});
