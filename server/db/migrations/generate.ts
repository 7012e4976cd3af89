// Generates the Prisma client of each database: `node server/db/migrations/generate.ts`.
import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { databases, folder, schemaOf } from "./schemas.ts";

const prisma = join(
  dirname(createRequire(import.meta.url).resolve("prisma/package.json")),
  "build",
  "index.js",
);

for (const database of databases) {
  // Prisma reads schemas only from files.
  const schema = join(folder, `.${database}.generate.prisma`);
  mkdirSync(join(folder, "generated"), { recursive: true });
  writeFileSync(schema, schemaOf(database));
  try {
    execFileSync(process.execPath, [prisma, "generate", "--no-hints", "--schema", schema], {
      cwd: folder,
      // `generate` does not use the schema engine, but downloads it unless the engine's path is configured. The
      // configured path is a program that always fails, so that any command that does use the engine fails.
      env: { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: "/bin/false", PRISMA_HIDE_UPDATE_MESSAGE: "1" },
      stdio: ["ignore", "pipe", "inherit"],
    });
  } finally {
    rmSync(schema);
  }
}
