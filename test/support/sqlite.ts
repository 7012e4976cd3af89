import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDatabase } from "../../server/db/openDatabase.ts";

/** The template of {@link newSqlite}: with the service's schema, and without rows. */
let prepared: Promise<Buffer> | undefined;

async function prepare(): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), "gatehouse-test-"));
  try {
    const file = join(folder, "prepared.db");
    // Closing the database leaves all data in one file.
    await (await openDatabase({ file })).close();
    return await readFile(file);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Creates a database in the state before the service's second start. */
export async function newSqlite(file: string): Promise<void> {
  prepared ??= prepare();
  await writeFile(file, await prepared, { mode: 0o600, flag: "wx" });
}
