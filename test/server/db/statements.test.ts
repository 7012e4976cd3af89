import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DatabaseError } from "../../../server/db/DatabaseError.ts";
import {
  migrationOf,
  migrationsFolder,
  pendingMigrations,
  readMigrations,
} from "../../../server/db/migrations/migrations.ts";
import { checksumOf, tokensOf } from "../../../server/db/migrations/statements.ts";
import { TEXT_CHECKSUMS } from "../../../server/db/migrations/textChecksums.ts";
import { testFolder } from "../../support/folder.ts";

/**
 * Checksums of the statements of released migrations. A released migration never changes: databases that applied it
 * would differ from new databases. Add the checksums of a new migration at its release.
 */
const RELEASED = {
  sqlite: {
    "0001_initial": "1650b2cff8c6b5e21db7a29d394e00960e02edd1ab13b978d037915fb616e634",
    "0002_access_ends": "d6b1d914fa0d84008b293e7e4ba9f1abe886d0c9d2490e242e28dde4e26f61c1",
    "0003_trusted_workloads": "ab5daa269374199eec005251ceb3aa7c753a3372a06009a63a6eb62fc1a93445",
    "0004_token_uses": "59e741f6127f1b42368199885b56a9e6679dba30f71f0a304053b4197ab813cd",
    "0005_tags": "ed8dcbefa16a0af990ccac42a05d329a42a9473c64bb2773080d6c54d4d8d482",
    "0006_record_failure": "ff799f8834a4e2f08bbef8b68315aeaa2924a3be59b8323c19269bbc83b69379",
    "0007_instance_schemas": "4476ec1777cc6c97bed1dfd1c1d3df02b3e5f65023226d2ba76e76e7f0ece85f",
    "0008_recording_sizes": "68dda245089aaed354dd2a05b5b86e06a50e3a6ee0b2222bc9696101f5f8d0c2",
  },
  postgresql: {
    "0001_initial": "9d4421c518d9be4813ca50b56690469ddb670de5ff11cf19fdc8d9e7a60c755c",
    "0002_access_ends": "27cf5409b445e19f75eea989ae4fc83cd4d809860f126df562fbf882ad9b3437",
    "0003_trusted_workloads": "2f8a454923ead6044cb238744250a78123b754e1cfe3e35c68d5c9b2e6a80714",
    "0004_token_uses": "9f00e0b15d38bce245064335809cdbc43bbd01dc6313ecad834a1a5118340006",
    "0005_tags": "e282693ddc0acf5e0b08af9dbf947b6d64b80ab30dc7feb36ec5768bcef79e79",
    "0006_record_failure": "ff799f8834a4e2f08bbef8b68315aeaa2924a3be59b8323c19269bbc83b69379",
    "0007_instance_schemas": "4476ec1777cc6c97bed1dfd1c1d3df02b3e5f65023226d2ba76e76e7f0ece85f",
    "0008_recording_sizes": "eac424943170e75ddeb752bd1240e61ff97957c0caf4408b170ef800f9b159f8",
  },
} as const;

const migration = (name: string, sql: string) => migrationOf(name, `-- oldest-beside: ${name}\n${sql}`);

const databases = ["sqlite", "postgresql"] as const;

describe.each(databases)("the released migrations of %s", (database) => {
  test("have the statements of their release", () => {
    const checksums = readMigrations(migrationsFolder(database)).map(
      ({ name, checksum }) => [name, checksum] as const,
    );
    expect(Object.fromEntries(checksums)).toMatchObject(RELEASED[database]);
  });

  test.each(Object.keys(RELEASED[database]))("%s keeps its checksum if only its comments change", (name) => {
    const sql = readFileSync(join(migrationsFolder(database), `${name}.sql`), "utf8");
    const checksum = checksumOf(sql);
    expect(checksumOf(`-- Another comment.\r\n${sql.replaceAll(/\n(?=\n)/g, "\n-- Inserted.\n")}`)).toBe(
      checksum,
    );
    expect(checksumOf(`${sql}; SELECT 1`)).not.toBe(checksum);
  });

  test("are accepted with the checksum of their text, as the first versions stored it", () => {
    const applied = Object.entries(TEXT_CHECKSUMS).map(([name, checksums]) => ({
      name,
      checksum: checksums[databases.indexOf(database)] ?? "",
    }));
    const migrations = readMigrations(migrationsFolder(database));
    expect(pendingMigrations("The database", applied, migrations)).toEqual(migrations.slice(applied.length));
  });
});

const WAY_OUT = /version before the first release .* `gatehouse import`.* docs\/operate\/upgrade\.md/;

test("the error for a database of another history contains the migration and the way out", () => {
  const migrations = [migration("0001_a", "SELECT 1"), migration("0002_b", "SELECT 2")];
  const differing = () => pendingMigrations("The database x", [{ name: "0001_a", checksum: "" }], migrations);
  expect(differing).toThrow(/The migration 0001_a of this version differs .* created the database x\./);
  expect(differing).toThrow(WAY_OUT);
  const renamed = () => pendingMigrations("The database x", [{ name: "0001_b", checksum: "" }], migrations);
  expect(renamed).toThrow(/has the migration 0001_b, which this version lacks/);
  expect(renamed).toThrow(WAY_OUT);
});

test.each([
  ["a block comment", "SELECT 1 /* one */"],
  ["an unfinished text", "SELECT 'a"],
  ["an unfinished name", 'SELECT "a'],
  ["an unfinished function", "SELECT $$ a"],
  ["a backtick", "SELECT `a`"],
])("a migration with %s is invalid", (_, sql) => {
  expect(() => migration("0001_a", sql)).toThrow(DatabaseError);
  expect(() => migration("0001_a", sql)).toThrow(
    "The migration 0001_a is invalid: Cannot read the SQL at line 2",
  );
});

test.each([
  ["no directive", "SELECT 1", /first line must be `-- oldest-beside: <migration>`/],
  ["a directive in the second line", "SELECT 1\n-- oldest-beside: 0001_a", /first line must be/],
  ["a directive without a migration", "-- oldest-beside:\nSELECT 1", /first line must be/],
  [
    "an unknown migration",
    "-- oldest-beside: 0001_b\nSELECT 1",
    /0001_b, which is neither this migration nor/,
  ],
  ["a newer migration", "-- oldest-beside: 0002_b\nSELECT 1", /0002_b, which is neither this migration nor/],
])("a migration with %s is invalid", (_, sql, problem) => {
  const folder = testFolder();
  writeFileSync(join(folder, "0001_a.sql"), sql);
  writeFileSync(join(folder, "0002_b.sql"), "-- oldest-beside: 0001_a\nSELECT 1");
  expect(() => readMigrations(folder)).toThrow(DatabaseError);
  expect(() => readMigrations(folder)).toThrow(problem);
});

test.each([
  ["a text", "SELECT 'a -- b'", "SELECT 'a -- c'"],
  ["a text with a doubled quote", "SELECT 'it''s -- a'", "SELECT 'it''s -- b'"],
  ["a text with escapes", String.raw`SELECT E'\' -- a'`, String.raw`SELECT E'\' -- b'`],
  ["a name", 'SELECT "a -- b"', 'SELECT "a -- c"'],
  ["a function", "DO $$ SELECT 1 -- a\n $$", "DO $$ SELECT 1 -- b\n $$"],
  ["a function with a tag", "DO $f$ $$ -- a\n $$ $f$", "DO $f$ $$ -- b\n $$ $f$"],
])("two dashes in %s begin no comment", (_, one, other) => {
  expect(checksumOf(one)).not.toBe(checksumOf(other));
});

const quoted = fc.string({ maxLength: 12 });
const token = fc.oneof(
  fc.constantFrom("SELECT", "e", "x1", "é", "10", "1.5", "(", ")", ",", ";", ".", "||", "<>", "::"),
  quoted.map((text) => `'${text.replaceAll("'", "''")}'`),
  quoted.map((text) => `"${text.replaceAll('"', '""')}"`),
  quoted.map((text) => `$tag$${text.replaceAll("$", "")}$tag$`),
);
const space = fc.oneof(
  fc.constantFrom(" ", "\n", "\t", "\r\n", "  \n"),
  quoted.map((text) => ` --${text.replaceAll(/[\r\n]/g, "")}\n`),
);
const tokens = fc.array(token, { minLength: 1, maxLength: 20 });
const spaced = (words: readonly string[], spaces: readonly string[]) =>
  words.map((word, index) => (spaces[index % spaces.length] ?? " ") + word).join("");

test("comments and spaces between tokens never change the checksum", () => {
  fc.assert(
    fc.property(tokens, fc.array(space, { minLength: 1 }), (words, spaces) => {
      expect(tokensOf(spaced(words, spaces))).toEqual(words);
      expect(checksumOf(spaced(words, spaces))).toBe(checksumOf(words.join(" ")));
    }),
  );
});

test("another, an additional and a missing token change the checksum", () => {
  fc.assert(
    fc.property(tokens, fc.array(space, { minLength: 1 }), fc.nat(), token, (words, spaces, at, other) => {
      const index = at % words.length;
      const original = checksumOf(spaced(words, spaces));
      const changed = (count: number, ...added: string[]) =>
        checksumOf(words.toSpliced(index, count, ...added).join(" "));
      if (words[index] !== other) expect(changed(1, other)).not.toBe(original);
      expect(changed(0, other)).not.toBe(original);
      expect(changed(1)).not.toBe(original);
    }),
  );
});
