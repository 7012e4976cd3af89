import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { migrationsFolder, readMigrations } from "../../../server/db/migrations/migrations.ts";
import { migrateSqlite } from "../../../server/db/sqlite/migrate.ts";
import { openSqlite } from "../../../server/db/sqlite/open.ts";
import { rowsOf, sqliteTables } from "../../../server/db/sqlite/tables.ts";
import { testFolder } from "../../support/folder.ts";

function open() {
  const sqlite = openSqlite(join(testFolder(), "test.db"));
  onTestFinished(() => void sqlite.close());
  return sqlite;
}

const models = readFileSync(new URL("../../../server/db/models.prisma", import.meta.url), "utf8");

test("every model is a table, and follows the tables that it refers to", () => {
  const sqlite = open();
  migrateSqlite(sqlite, readMigrations(migrationsFolder("sqlite")));
  const names = sqliteTables(sqlite).map(({ name }) => name);
  expect([...names].sort()).toEqual(
    [...models.matchAll(/^model (\w+) /gm)].map((match) => match[1] ?? "").sort(),
  );
  const relations = [...models.matchAll(/^model (\w+) \{([^}]+)\}/gm)].flatMap(([, child = "", body = ""]) =>
    [...body.matchAll(/^ +\w+ +(\w+) +@relation\(fields/gm)].map(
      ([, parent = ""]) => [parent, child] as const,
    ),
  );
  expect(relations.length).toBeGreaterThan(8);
  for (const [parent, child] of relations) {
    expect([parent, child, names.indexOf(parent) < names.indexOf(child)]).toEqual([parent, child, true]);
  }
});

test("rejects tables that refer to each other, without an endless search", () => {
  const sqlite = open();
  sqlite.exec(
    `CREATE TABLE "A" ("id" TEXT PRIMARY KEY, "b" TEXT REFERENCES "B" ("id"));
     CREATE TABLE "B" ("id" TEXT PRIMARY KEY, "a" TEXT REFERENCES "A" ("id"));
     CREATE TABLE "C" ("id" INTEGER PRIMARY KEY AUTOINCREMENT);`,
  );
  expect(() => sqliteTables(sqlite)).toThrow("tables refer to each other: A, B, A");
});

test("returns values in the types of JSON, 64-bit numbers exactly, in batches", () => {
  const sqlite = open();
  sqlite.exec(
    `CREATE TABLE "Thing" ("id" INTEGER PRIMARY KEY AUTOINCREMENT, "yes" BOOLEAN, "at" DATETIME, "big" BIGINT, "x" REAL);
     INSERT INTO "Thing" VALUES (7, 1, '2026-01-02T03:04:05.678+00:00', 9007199254740993, 0.1), (8, 0, NULL, -1, 2.0),
       (9, NULL, NULL, NULL, NULL);
     DELETE FROM "Thing" WHERE "id" = 9;`,
  );
  const [table] = sqliteTables(sqlite);
  if (!table) throw new Error("no table");
  // Ids are never reused, not even the last id after its row has been deleted.
  expect(table.sequence).toEqual({ column: "id", last: 9 });
  expect([...rowsOf(sqlite, table, 1)]).toEqual([
    [{ id: "7", yes: true, at: "2026-01-02T03:04:05.678Z", big: "9007199254740993", x: 0.1 }],
    [{ id: "8", yes: false, at: null, big: "-1", x: 2 }],
  ]);
});
