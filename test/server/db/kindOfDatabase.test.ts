import { expect, test } from "vitest";
import { postgresqlAddress } from "../../support/postgresql/database.ts";
import { testDatabase } from "../db/database.ts";

test("each run of the server's tests is on the database that its name says", async ({ task }) => {
  const project = task.file.projectName;
  expect(["sqlite", "postgresql"]).toContain(project);
  expect(postgresqlAddress() === undefined).toBe(project === "sqlite");
  const { client } = await testDatabase();
  const version = project === "sqlite" ? "sqlite_version()" : "version()";
  const [row] = await client.$queryRawUnsafe<{ version: string }[]>(`SELECT ${version} AS version`);
  expect(row?.version).toMatch(project === "sqlite" ? /^3\./ : /^PostgreSQL /);
});
