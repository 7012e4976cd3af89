import { Client, type ClientConfig } from "pg";
import { reasonOf } from "../../OperatorError.ts";
import { DatabaseError } from "../DatabaseError.ts";
import { type AppliedMigration, type Migration, pendingMigrations } from "../migrations/migrations.ts";

/**
 * Key of the advisory lock that a process holds while it migrates the database. The key is an arbitrary number that no
 * other program uses.
 */
const LOCK = 4_727_466;

/**
 * Applies the outstanding migrations to the database, each in one transaction. If several processes start at once, one
 * process applies the migrations, and the other processes wait.
 * @returns names of the applied migrations
 * @throws DatabaseError a newer version of the service wrote the database, an applied migration has changed, or a
 * migration fails; the database is then in its state before that migration
 */
export async function migratePostgresql(
  config: ClientConfig,
  migrations: readonly Migration[],
): Promise<string[]> {
  return inMigrationTurn(config, async (client) => {
    await client.query(
      'CREATE TABLE IF NOT EXISTS "_migration" ("name" TEXT PRIMARY KEY, "checksum" TEXT NOT NULL, "appliedAt" TEXT NOT NULL)',
    );
    const { rows } = await client.query<AppliedMigration>(
      'SELECT "name", "checksum" FROM "_migration" ORDER BY "name" COLLATE "C"',
    );
    const pending = pendingMigrations(`The database ${client.database}`, rows, migrations);
    for (const migration of pending) await apply(client, migration);
    return pending.map((migration) => migration.name);
  });
}

/** Runs work that changes the schema of a database. Only one process at a time runs such work. */
export async function inMigrationTurn<T>(
  config: ClientConfig,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const client = new Client(config);
  await client.connect();
  try {
    await client.query("SELECT pg_advisory_lock($1)", [LOCK]);
    return await work(client);
  } finally {
    // PostgreSQL releases the lock when the session ends.
    await client.end();
  }
}

async function apply(client: Client, { name, sql, checksum }: Migration): Promise<void> {
  try {
    await client.query("BEGIN");
    // This statement must be the first one. A running instance may have an exclusive transaction, which holds a lock on
    // this table and then uses other tables. This statement waits until that transaction ends. If the migration locked
    // another table first, the two transactions could deadlock.
    await client.query('INSERT INTO "_migration" ("name", "checksum", "appliedAt") VALUES ($1, $2, $3)', [
      name,
      checksum,
      new Date().toISOString(),
    ]);
    await client.query(sql);
    await client.query("COMMIT");
  } catch (error) {
    const reason = reasonOf(error);
    throw new DatabaseError(`The migration ${name} of the database ${client.database} failed: ${reason}`, {
      cause: error,
    });
  }
}
