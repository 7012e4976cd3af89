import type { PrismaClient } from "./generated/sqlite/client.ts";
import type { Snapshots } from "./sqlite/snapshots.ts";

/** An open database of the service. */
export interface Database {
  readonly client: PrismaClient;
  /** Names of the migrations that were applied when the database was opened. */
  readonly migrated: readonly string[];
  /** The reason why searches for device names use no index; undefined if the searches use an index. */
  readonly namesUnindexed: string | undefined;
  /** Access to snapshots of the database; undefined on PostgreSQL, which has its own backup programs. */
  readonly snapshots: Snapshots | undefined;
  /** Executes a durable write that changes no data, to test the database. Rejects if the database cannot be written. */
  tryWrite(): Promise<void>;
  /** Closes the database after the running statements have ended. Later statements fail. */
  close(): Promise<void>;
}

/** The location of the service's database. */
export type DatabaseLocation =
  | {
      /**
       * Path of the SQLite file. The service creates a missing file. While the file is open, no other process can use
       * it.
       */
      readonly file: string;
    }
  | {
      /**
       * URL of the PostgreSQL database (`postgresql://…`), including the password if the database requires a password.
       * Several processes may use the database.
       */
      readonly url: string;
      /** Maximum number of connections that this process opens. */
      readonly connections: number;
      /** Maximum time, in milliseconds, without data from the database. @default `SILENCE_TIMEOUT` */
      readonly silence?: number;
    };
