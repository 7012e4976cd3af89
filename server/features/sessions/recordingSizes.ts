import { foldCounterRows } from "../../db/sql/counterRows.ts";
import { readRows, type SqlClient, sql } from "../../db/sql/sql.ts";
import type { Services } from "../../services.ts";

/** The size of a namespace's recordings. */
export interface RecordingSize {
  readonly tenantId: string;
  /**
   * Size in bytes, including the overhead of each chunk. The full size of a recording is counted until all of its
   * chunks have been deleted.
   */
  readonly bytes: number;
}

/**
 * Returns the sizes of all namespaces that have recordings, the largest first. Database triggers update the sizes after
 * each change to a session. For each namespace, the query reads one row on SQLite, and a few rows on PostgreSQL.
 */
export async function readRecordingSizes(db: SqlClient): Promise<RecordingSize[]> {
  const rows = await readRows<{ readonly tenantId: string; readonly size: number | bigint | string }>(
    db,
    sql`SELECT "tenantId", SUM("size") AS "size" FROM "RecordingSize" GROUP BY "tenantId"`,
  );
  return rows
    .map(({ tenantId, size }) => ({ tenantId, bytes: Number(size) }))
    .filter(({ bytes }) => bytes > 0)
    .sort((one, other) => other.bytes - one.bytes);
}

/** Merges the counter rows of closed database connections: see {@link foldCounterRows}. */
export const foldRecordingSizes = ({ db }: Pick<Services, "db">): Promise<void> =>
  foldCounterRows(db, { name: "RecordingSize", key: ["tenantId"], counter: "size" });
