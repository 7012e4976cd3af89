import { join } from "node:path";
import { onTestFinished } from "vitest";
import { type Database, openDatabase } from "../../../server/dist/db/openDatabase.js";
import { testFolder } from "../../support/folder.ts";

/** A new database, closed and removed when the test that asks for it has ended. */
export async function testDatabase(): Promise<Database & { readonly file: string }> {
  const file = join(testFolder(), "gatehouse.db");
  const database = await openDatabase({ file });
  onTestFinished(() => database.close());
  return { ...database, file };
}
