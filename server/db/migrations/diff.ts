// Writes the next migration of each database: `node server/db/migrations/diff.ts <name>`, for developers only.
//
// The command compares the current models with the models in the last commit that changed a migration. It writes
// `<database>/<number>_<name>.sql`. Review the SQL before you commit it. The SQL shows a renamed column as a dropped
// column and a new column. The SQL does not set the values of new columns in existing rows: add statements for them.
// The first line of the SQL contains the oldest schema whose instances may run at the same time as instances with the
// new schema: see CONTRIBUTING.md.
import { execFileSync } from "node:child_process";
import { readdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { databases, difference } from "./schemas.ts";

const name = process.argv[2];
if (!name || !/^[a-z0-9_]+$/.test(name)) {
  console.error("Usage: node server/db/migrations/diff.ts <name>, where <name> consists of a-z, 0-9 and _");
  process.exit(2);
}

const git = (...words: string[]): string =>
  execFileSync("git", words, { cwd: import.meta.dirname, encoding: "utf8" }).trim();
if (git("status", "--porcelain", "--", ...databases) !== "") {
  console.error("A migration is not committed. Delete it, or commit it together with its models.");
  process.exit(2);
}
const commit = git("log", "-1", "--format=%H", "--", ...databases.map((database) => `${database}/*.sql`));
const models = git("show", `${commit}:server/db/models.prisma`);

for (const database of databases) {
  const sql = await difference(database, models);
  if (sql === "") {
    console.log(`${database}: no changes`);
    continue;
  }
  const folder = join(import.meta.dirname, database);
  const number = readdirSync(folder).filter((file) => file.endsWith(".sql")).length + 1;
  const file = join(folder, `${String(number).padStart(4, "0")}_${name}.sql`);
  // By default, instances of older versions may not run with the new schema. The developer changes this line to allow
  // them.
  writeFileSync(file, `-- oldest-beside: ${basename(file, ".sql")}\n${sql}\n`);
  console.log(`${database}: ${file}`);
}
