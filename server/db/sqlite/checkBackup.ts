import Sqlite from "better-sqlite3";
import { DatabaseError } from "../DatabaseError.ts";
import {
  type AppliedMigration,
  migrationsFolder,
  pendingMigrations,
  readMigrations,
} from "../migrations/migrations.ts";

/** A signing key as stored in the database. */
interface SealedKey {
  readonly kid: string;
  readonly sealed: string;
}

/** Row counts of a backup. They are shown to the operator who restores the backup. */
export interface BackupContent {
  readonly users: number;
  readonly namespaces: number;
  readonly devices: number;
}

/**
 * Checks that a file is an intact database of this version of the service or an older version. Also checks that the
 * instance secret decrypts the secrets in the database.
 * @param file a copy that no other process uses
 * @param name name of the backup in messages
 * @param openKey decrypts a signing key; throws if the instance secret does not decrypt the key
 * @throws DatabaseError a check fails; the message describes the problem
 */
export function checkBackup(file: string, name: string, openKey: (key: SealedKey) => void): BackupContent {
  const sqlite = new Sqlite(file, { fileMustExist: true });
  try {
    // Without this pragma, SQLite would leave `-wal` and `-shm` files next to a file that is in WAL mode.
    sqlite.pragma("locking_mode = EXCLUSIVE");
    checkWhole(sqlite, name);
    checkOrigin(sqlite, name);
    checkSecret(sqlite, name, openKey);
    const count = (table: string) =>
      sqlite.prepare(`SELECT count(*) FROM "${table}"`).pluck().get() as number;
    return { users: count("User"), namespaces: count("Namespace"), devices: count("Device") };
  } catch (error) {
    if (!(error instanceof Sqlite.SqliteError)) throw error;
    throw new DatabaseError(`${name} is not an intact SQLite database: ${error.message}`, { cause: error });
  } finally {
    sqlite.close();
  }
}

function checkWhole(sqlite: Sqlite.Database, name: string): void {
  const problem = sqlite.pragma("integrity_check(1)", { simple: true });
  if (problem !== "ok") throw new DatabaseError(`${name} is damaged: ${problem}`);
  const [broken] = sqlite.pragma("foreign_key_check") as { table: string; parent: string }[];
  if (broken) {
    throw new DatabaseError(
      `${name} is damaged: a row of ${broken.table} refers to a missing row of ${broken.parent}`,
    );
  }
}

function checkOrigin(sqlite: Sqlite.Database, name: string): void {
  const history = sqlite.prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = '_migration'");
  const applied =
    history.get() === undefined
      ? []
      : (sqlite.prepare('SELECT name, checksum FROM "_migration" ORDER BY name').all() as AppliedMigration[]);
  if (applied.length === 0) throw new DatabaseError(`${name} is not a database of the service`);
  pendingMigrations(`The database ${name}`, applied, readMigrations(migrationsFolder("sqlite")));
}

function checkSecret(sqlite: Sqlite.Database, name: string, openKey: (key: SealedKey) => void): void {
  const keys = sqlite.prepare('SELECT kid, sealed FROM "SigningKey"').all() as SealedKey[];
  try {
    for (const key of keys) openKey(key);
  } catch (error) {
    throw new DatabaseError(
      `${name} was written with a different instance secret. Provide the secret that was stored ` +
        "with the backup, as the file `secret` in the data folder or with GATEHOUSE_SECRET_FILE",
      { cause: error },
    );
  }
}
