import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDatabase } from "../../server/db/openDatabase.ts";

/** The path of the template database for {@link newSqlite}. The template has the service's schema and no rows. */
let prepared: Promise<Buffer> | undefined;

async function prepare(): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), "gatehouse-test-"));
  try {
    const file = join(folder, "prepared.db");
    // After it is closed, the database consists of one file.
    await (await openDatabase({ file })).close();
    return await readFile(file);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Creates a database that is in the same state as after the service's first start. */
export async function newSqlite(file: string): Promise<void> {
  prepared ??= prepare();
  await writeFile(file, await prepared, { mode: 0o600, flag: "wx" });
}
