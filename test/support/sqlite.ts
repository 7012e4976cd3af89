import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDatabase } from "../../server/db/openDatabase.ts";

/** The database whose copies {@link newSqlite} makes: with the service's layout, and without rows. */
let prepared: Promise<Buffer> | undefined;

async function prepare(): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), "gatehouse-test-"));
  try {
    const file = join(folder, "prepared.db");
    // Closing it leaves everything in the one file.
    await (await openDatabase({ file })).close();
    return await readFile(file);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Makes a database as the service finds it from its second start on. */
export async function newSqlite(file: string): Promise<void> {
  prepared ??= prepare();
  await writeFile(file, await prepared, { mode: 0o600, flag: "wx" });
}
