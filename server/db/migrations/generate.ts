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
      // `generate` does not use the schema engine, but downloads the engine unless its path is configured. The
      // configured program always fails, so a command that uses the engine fails too.
      env: { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: "/bin/false", PRISMA_HIDE_UPDATE_MESSAGE: "1" },
      stdio: ["ignore", "pipe", "inherit"],
    });
  } finally {
    rmSync(schema);
  }
}
