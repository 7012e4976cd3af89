// Writes the next migration of each database: `node server/db/diff.ts <name>`, for developers only.
//
// It compares the models with the snapshot that stands beside the migrations (what the last migration led to),
// writes `migrations/<database>/<number>_<name>.sql` and renews the snapshot. Review the SQL before committing
// it: a rename looks like a column dropped and another one added, and only you know which rows need a value.
// The engine is the official one, in its WebAssembly form, which needs no download (its version is pinned).
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  bindMigrationAwareSqlAdapterFactory,
  ColumnTypeEnum,
  mockMigrationAwareAdapterFactory,
} from "@prisma/driver-adapter-utils";
import { type DiffTarget, SchemaEngine } from "@prisma/schema-engine-wasm";
import { type DatabaseName, databases, schemaOf } from "./schemas.ts";

const name = process.argv[2];
if (!name || !/^[a-z0-9_]+$/.test(name)) {
  console.error("Usage: node server/db/diff.ts <name>, where the name is made of a-z, 0-9 and _");
  process.exit(2);
}

/**
 * The connection that the engine wants at its start, although it compares schemas as text. It only answers PostgreSQL's
 * queries for the version and for the existence of the schema.
 */
function connectionOf(database: DatabaseName): object {
  const factory = mockMigrationAwareAdapterFactory(database === "sqlite" ? "sqlite" : "postgres");
  const connect = factory.connect.bind(factory);
  factory.connect = async () => {
    const connection = await connect();
    connection.queryRaw = async () => ({
      columnNames: ["exists", "version", "numeric_version"],
      columnTypes: [ColumnTypeEnum.Boolean, ColumnTypeEnum.Text, ColumnTypeEnum.Int32],
      rows: [[true, "PostgreSQL 15.0", 150000]],
    });
    return connection;
  };
  return bindMigrationAwareSqlAdapterFactory(factory);
}

/** SQL that migrates one schema to another; empty if both are equal. */
async function difference(database: DatabaseName, from: string | undefined, to: string): Promise<string> {
  const engine = await SchemaEngine.new({ datamodels: undefined }, () => {}, connectionOf(database));
  const datamodel = (content: string): DiffTarget => ({
    tag: "schemaDatamodel",
    files: [{ path: "schema.prisma", content }],
  });
  const result = await engine.diff({
    from: from === undefined ? { tag: "empty" } : datamodel(from),
    to: datamodel(to),
    script: true,
    exitCode: null,
    filters: { externalTables: [], externalEnums: [] },
  });
  return (result.stdout ?? "").replace("-- This is an empty migration.", "").trim();
}

for (const database of databases) {
  const folder = join(import.meta.dirname, "migrations", database);
  mkdirSync(folder, { recursive: true });
  const snapshot = join(folder, "schema.prisma");
  const schema = schemaOf(database);
  const sql = await difference(
    database,
    existsSync(snapshot) ? readFileSync(snapshot, "utf8") : undefined,
    schema,
  );
  writeFileSync(snapshot, schema);
  if (sql === "") {
    console.log(`${database}: nothing to do`);
    continue;
  }
  const number = readdirSync(folder).filter((file) => file.endsWith(".sql")).length + 1;
  const file = join(folder, `${String(number).padStart(4, "0")}_${name}.sql`);
  writeFileSync(file, `${sql}\n`);
  console.log(`${database}: ${file}`);
}
