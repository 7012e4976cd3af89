import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  bindMigrationAwareSqlAdapterFactory,
  ColumnTypeEnum,
  mockMigrationAwareAdapterFactory,
} from "@prisma/driver-adapter-utils";
import { type DiffTarget, SchemaEngine } from "@prisma/schema-engine-wasm";

/** The databases that the service supports. Both use the models of `models.prisma`. */
export const databases = ["sqlite", "postgresql"] as const;

type DatabaseName = (typeof databases)[number];

/** The folder `server/db`, which contains the models and the generated clients. */
export const folder = join(import.meta.dirname, "..");

/**
 * Returns the Prisma schema of one database. The schema consists of the settings of the client and the models. The path
 * of the client is relative to `folder`.
 */
export const schemaOf = (
  database: DatabaseName,
  models: string = readFileSync(join(folder, "models.prisma"), "utf8"),
): string =>
  `generator client {
  provider            = "prisma-client"
  output              = "./generated/${database}"
  runtime             = "nodejs"
  moduleFormat        = "esm"
  importFileExtension = "ts"
  // Needs half the memory. Plans are cached, so few queries are compiled again.
  compilerBuild       = "small"
  previewFeatures     = ["views"]
}

datasource db {
  provider = "${database}"
}

${models}`;

/**
 * Creates the fake database connection that Prisma's schema engine requires when it starts. The engine compares schemas
 * as text and needs no database. The connection answers only two queries: one for PostgreSQL's version, and one that
 * tests whether the schema exists.
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

/**
 * Returns SQL that migrates a database from older models to the current models. The SQL is empty if the models are
 * equal. Prisma's official engine generates the SQL. Its WebAssembly build is used because this build needs no download
 * and has a pinned version.
 * @param from the older models; undefined for an empty database
 */
export async function difference(database: DatabaseName, from: string | undefined): Promise<string> {
  const engine = await SchemaEngine.new({ datamodels: undefined }, () => {}, connectionOf(database));
  const datamodel = (content: string): DiffTarget => ({
    tag: "schemaDatamodel",
    files: [{ path: "schema.prisma", content }],
  });
  const result = await engine.diff({
    from: from === undefined ? { tag: "empty" } : datamodel(schemaOf(database, from)),
    to: datamodel(schemaOf(database)),
    script: true,
    exitCode: null,
    filters: { externalTables: [], externalEnums: [] },
  });
  return (result.stdout ?? "").replace("-- This is an empty migration.", "").trim();
}
