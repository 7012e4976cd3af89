import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { GroupCommit } from "../../../server/db/sql/groupCommit.ts";
import { type SqlClient, sql } from "../../../server/db/sql/sql.ts";
import { sqliteAdapter } from "../../../server/db/sqlite/adapter.ts";
import { openSqlite } from "../../../server/db/sqlite/open.ts";
import { beginOnSqlite } from "../../../server/db/sqlite/openDatabase.ts";
import { testFolder } from "../../support/folder.ts";

/**
 * Opens a SQLite database with the table "Note". `commits.count` is the number of COMMIT statements. If `commits.fail`
 * is set, COMMIT fails.
 */
async function open() {
  const sqlite = openSqlite(join(testFolder(), "test.db"));
  onTestFinished(() => void sqlite.close());
  sqlite.exec('CREATE TABLE "Note" ("note" TEXT)');
  const exec = sqlite.exec.bind(sqlite);
  const commits = { count: 0, fail: false };
  sqlite.exec = (script) => {
    if (script !== "COMMIT") return exec(script);
    commits.count += 1;
    if (commits.fail) throw new Error("the disk has failed");
    return exec(script);
  };
  const adapter = await sqliteAdapter(sqlite).connect();
  const notes = () => sqlite.prepare('SELECT "note" FROM "Note"').pluck().all();
  const groups = new GroupCommit(() => beginOnSqlite(adapter), { oneLane: true });
  const run = <T>(work: (tx: SqlClient) => Promise<T>) => groups.run("", work, false);
  return { adapter, run, commits, notes };
}

const adding = (note: string) => (tx: SqlClient) => tx.$executeRaw(sql`INSERT INTO "Note" VALUES (${note})`);
const several = (count: number) => Array.from({ length: count }, (_, index) => `note-${index}`);

test("work of one turn of the event loop shares a COMMIT", async () => {
  const { run, commits, notes } = await open();
  await Promise.all(several(16).map((note) => run(adding(note))));
  expect([commits.count, notes()]).toEqual([1, several(16)]);
  await run(adding("alone"));
  expect([commits.count, notes().length]).toEqual([2, 17]);
});

test("splits a large group into several COMMITs, so that other statements run in between", async () => {
  const { adapter, run, commits, notes } = await open();
  const crowd = Promise.all(several(200).map((note) => run(adding(note))));
  await new Promise(setImmediate);
  const query = { sql: 'SELECT COUNT(*) FROM "Note"', args: [], argTypes: [] };
  const { rows } = await adapter.queryRaw(query);
  expect(Number(rows[0]?.[0])).toBeLessThan(200);
  await crowd;
  expect([commits.count, notes()]).toEqual([4, several(200)]);
});

test("rejects all work of a group whose COMMIT fails, including work that depends on it", async () => {
  const { run, commits, notes } = await open();
  commits.fail = true;
  const refused = async () => {
    throw new Error("refused because of the note before");
  };
  const outcomes = await Promise.allSettled([run(adding("lost")), run(refused)]);
  expect(outcomes.map((outcome) => outcome.status === "rejected" && outcome.reason.message)).toEqual([
    "the disk has failed",
    "the disk has failed",
  ]);
  commits.fail = false;
  await run(adding("next"));
  expect(notes()).toEqual(["next"]);
});

test("all work fails if SQLite undoes the whole transaction, and the next transaction succeeds", async () => {
  const { run, notes } = await open();
  const undone = async (tx: SqlClient) => {
    await tx.$executeRaw(sql`ROLLBACK`);
    throw new Error("undone");
  };
  const outcomes = await Promise.allSettled([run(adding("lost")), run(undone), run(adding("never begun"))]);
  expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
  await run(adding("next"));
  expect(notes()).toEqual(["next"]);
});
