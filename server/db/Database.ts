import type { PrismaClient } from "./generated/sqlite/client.ts";
import type { Snapshots } from "./sqlite/snapshots.ts";

/** An open database of the service. */
export interface Database {
  readonly client: PrismaClient;
  /** Names of the migrations that were applied when the database was opened. */
  readonly migrated: readonly string[];
  /** The reason why device searches by name use no index; undefined if they use one. */
  readonly namesUnindexed: string | undefined;
  /** Snapshots of the database; undefined on PostgreSQL, which has its own programs for backups. */
  readonly snapshots: Snapshots | undefined;
  /** Executes a durable write that changes nothing. Rejects if the database cannot be written. */
  tryWrite(): Promise<void>;
  /** Closes the database after the running statements have ended. No further statements are possible. */
  close(): Promise<void>;
}

/** The location of the service's database. */
export type DatabaseLocation =
  | {
      /** Path of the SQLite file, which is created if missing and belongs to this process alone while it is open. */
      readonly file: string;
    }
  | {
      /** postgresql://…, with the password if one is needed. Several processes may use the database. */
      readonly url: string;
      /** Maximum number of connections that this process opens. */
      readonly connections: number;
      /** Time that the database may be silent, in milliseconds. @default `SILENCE_TIMEOUT` */
      readonly silence?: number;
    };
