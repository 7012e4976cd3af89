import { expect, test } from "vitest";
import { postgresqlAddress } from "../../support/postgresql/database.ts";
import { testDatabase } from "./database.ts";

test("each run of the server tests uses the database that the project's name states", async ({ task }) => {
  const onPostgresql = task.file.projectName === "postgresql";
  expect(postgresqlAddress() !== undefined).toBe(onPostgresql);
  const { client } = await testDatabase();
  const version = onPostgresql ? "version()" : "sqlite_version()";
  const [row] = await client.$queryRawUnsafe<{ version: string }[]>(`SELECT ${version} AS version`);
  expect(row?.version).toMatch(onPostgresql ? /^PostgreSQL / : /^3\./);
});
