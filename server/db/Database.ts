import type { PrismaClient } from "./generated/sqlite/client.ts";
import type { Snapshots } from "./sqlite/snapshots.ts";

/** An open database of the service. */
export interface Database {
  readonly client: PrismaClient;
  /** Names of the migrations that were applied when it was opened. */
  readonly migrated: readonly string[];
  /** Why devices are searched by name without an index; undefined with one. */
  readonly namesUnindexed: string | undefined;
  /** Undefined on PostgreSQL, which has its own programs for backups. */
  readonly snapshots: Snapshots | undefined;
  /** Makes a durable write that changes nothing; rejects when the database cannot be written. */
  tryWrite(): Promise<void>;
  /** Closes the database after the running statements have ended; no statement can follow. */
  close(): Promise<void>;
}

/** The location of the service's database. */
export type DatabaseLocation =
  | {
      /** Path of the SQLite file, which is created if missing and belongs to this process alone while it is open. */
      readonly file: string;
    }
  | {
      /** postgresql://…, with the password if one is needed. Several processes may use it. */
      readonly url: string;
      /** Maximum number of connections that this process opens. */
      readonly connections: number;
      /** How long the database may be silent, in milliseconds. @default `SILENCE_TIMEOUT` */
      readonly silence?: number;
    };
