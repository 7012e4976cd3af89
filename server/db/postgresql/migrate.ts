import { setTimeout as wait } from "node:timers/promises";
import { Client, type ClientConfig, DatabaseError as PostgresqlError } from "pg";
import { reasonOf } from "../../OperatorError.ts";
import { INSTANCE_LIFETIME, MIGRATION_LOCK, type MigrationOptions, type OlderInstance } from "../Database.ts";
import { DatabaseError } from "../DatabaseError.ts";
import {
  type AppliedMigration,
  type Migration,
  oldestBesideAll,
  pendingMigrations,
} from "../migrations/migrations.ts";

/**
 * Maximum time, in milliseconds, to wait for older instances. It is slightly longer than the lifetime of an instance.
 * So a crashed instance delays the start, but does not prevent it.
 */
const PATIENCE = INSTANCE_LIFETIME + 5_000;
/** Time between two checks of whether the older instances have stopped, in milliseconds. */
const RECHECK = 1_000;

/**
 * Applies the pending migrations to the database, each in its own transaction. First waits until all instances that are
 * not compatible with the new schema have stopped. If several processes start at the same time, one process applies the
 * migrations, and the other processes wait.
 * @returns names of the applied migrations
 * @throws DatabaseError a newer version of the service wrote the database, an applied migration has changed, or older
 *   instances are still running. Also thrown if a migration fails. The failed migration is rolled back.
 */
export async function migratePostgresql(
  config: ClientConfig,
  migrations: readonly Migration[],
  { anyway = false, patience = PATIENCE, onWait = () => {} }: MigrationOptions = {},
): Promise<string[]> {
  const end = performance.now() + patience;
  for (let attempt = 1; ; attempt += 1) {
    // A process that waits for instances does not hold the lock, so other processes can start.
    const outcome = await inMigrationTurn(config, async (client) => {
      const pending = await pendingOn(client, migrations);
      const older = anyway ? [] : await olderInstances(client, oldestBesideAll(pending));
      if (older.length === 0) await applyAll(client, pending, migrations);
      return { pending: pending.map(({ name }) => name), older };
    });
    const { pending, older } = outcome;
    if (older.length === 0) return pending;
    if (performance.now() >= end) throw stillRunning(pending, older);
    if (attempt === 1) onWait(older);
    await wait(Math.min(RECHECK, Math.max(0, end - performance.now())));
  }
}

/** Runs work that changes the schema of a database. Only one process at a time runs such work. */
export async function inMigrationTurn<T>(
  config: ClientConfig,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const client = new Client(config);
  await client.connect();
  try {
    await client.query("SELECT pg_advisory_lock($1)", [MIGRATION_LOCK]);
    return await work(client);
  } finally {
    // PostgreSQL releases the lock when the session ends.
    await client.end();
  }
}

async function pendingOn(client: Client, migrations: readonly Migration[]): Promise<readonly Migration[]> {
  await client.query(
    `CREATE TABLE IF NOT EXISTS "_migration" (
      "name" TEXT PRIMARY KEY, "checksum" TEXT NOT NULL, "appliedAt" TEXT NOT NULL, "oldestBeside" TEXT
    )`,
  );
  const { rows } = await client.query<AppliedMigration>(
    'SELECT "name", "checksum" FROM "_migration" ORDER BY "name" COLLATE "C"',
  );
  return pendingMigrations(`The database ${client.database}`, rows, migrations);
}

/**
 * Returns the running instances whose schema is older than `oldest`. An instance without a schema is treated as older
 * than any migration. The clock of the database determines which instances are still running.
 * @param oldest empty if no migration is pending
 */
async function olderInstances(client: Client, oldest: string): Promise<readonly OlderInstance[]> {
  if (oldest === "") return [];
  const { rows: tables } = await client.query(`SELECT to_regclass('"Instance"') AS "name"`);
  if (tables[0]?.name === null) return [];
  // The first versions of the service created the table without a column for the schema. `to_jsonb` returns null for a
  // column that does not exist.
  const { rows } = await client.query<OlderInstance>(
    `SELECT "id", "peerUrl", "schema", ceil(extract(epoch FROM "left"))::integer AS "secondsLeft" FROM (
       SELECT "id", "peerUrl", to_jsonb("Instance") ->> 'schema' AS "schema",
         "lastSeen" + make_interval(secs => $1) - timezone('utc', clock_timestamp()) AS "left"
       FROM "Instance"
     ) AS "instances"
     WHERE "left" > interval '0' AND ("schema" IS NULL OR "schema" < $2 COLLATE "C") ORDER BY "id"`,
    [INSTANCE_LIFETIME / 1000, oldest],
  );
  return rows;
}

/** Returns a line that describes a running instance to the operator. */
const lineOf = ({ id, peerUrl, schema, secondsLeft }: OlderInstance): string =>
  `instance ${id}${peerUrl === null ? "" : ` (${peerUrl})`}: ${schema ?? "no registered schema"}, ` +
  `is treated as running for ${secondsLeft} more seconds`;

const stillRunning = (pending: readonly string[], older: readonly OlderInstance[]): DatabaseError =>
  new DatabaseError(
    [
      `The database was not migrated (${pending.join(", ")}), because instances of an older version are running:`,
      ...older.map((instance) => `  ${lineOf(instance)}`),
      "Stop these instances, and start again. Or migrate beside them with --migrate-anyway on. Instances with a " +
        "registered schema then stop by themselves; other instances continue with wrong results",
    ].join("\n"),
  );

async function applyAll(
  client: Client,
  pending: readonly Migration[],
  all: readonly Migration[],
): Promise<void> {
  if (pending.length === 0) return;
  // The first versions created the table without this column.
  await client.query('ALTER TABLE "_migration" ADD COLUMN IF NOT EXISTS "oldestBeside" TEXT');
  for (const { name, oldestBeside } of all) {
    await client.query(
      'UPDATE "_migration" SET "oldestBeside" = $2 WHERE "name" = $1 AND "oldestBeside" IS NULL',
      [name, oldestBeside],
    );
  }
  for (const migration of pending) await apply(client, migration);
}

/** PostgreSQL's code for a transaction that it aborted because of a deadlock with another transaction. */
const DEADLOCK = "40P01";
/** Maximum number of attempts to apply a migration that deadlocks with transactions of running instances. */
const ATTEMPTS = 20;

async function apply(client: Client, migration: Migration): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await tryApply(client, migration);
      return;
    } catch (error) {
      await client.query("ROLLBACK").catch(() => {});
      if (error instanceof PostgresqlError && error.code === DEADLOCK && attempt < ATTEMPTS) continue;
      const reason = reasonOf(error);
      throw new DatabaseError(
        `The migration ${migration.name} of the database ${client.database} failed: ${reason}`,
        { cause: error },
      );
    }
  }
}

async function tryApply(client: Client, { name, sql, checksum, oldestBeside }: Migration): Promise<void> {
  await client.query("BEGIN");
  // This statement must be the first one. A running instance may have an exclusive transaction that locks this table
  // and then uses other tables. This statement waits until that transaction ends. If the migration locked a different
  // table first, the two transactions could deadlock.
  await client.query(
    'INSERT INTO "_migration" ("name", "checksum", "appliedAt", "oldestBeside") VALUES ($1, $2, $3, $4)',
    [name, checksum, new Date().toISOString(), oldestBeside],
  );
  await client.query(sql);
  await client.query("COMMIT");
}
