import { MINUTE } from "@gatehouse-access/sdk/times";
import type { PrismaClient } from "./generated/sqlite/client.ts";
import type { Snapshots } from "./sqlite/snapshots.ts";

/** An open database of the service. */
export interface Database {
  readonly client: PrismaClient;
  /** Names of the migrations that were applied when the database was opened. */
  readonly migrated: readonly string[];
  /**
   * The schema of this version: the name of its newest migration. Undefined on SQLite, where no other process uses the
   * database.
   */
  readonly schema: string | undefined;
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

/**
 * Time without a heartbeat after which an instance of the service is treated as ended, in milliseconds. A migration
 * waits for older instances that have not ended.
 */
export const INSTANCE_LIFETIME = MINUTE;

/**
 * Key of the advisory lock that a process holds while it migrates a PostgreSQL database. The key is an arbitrary number
 * that no other program uses.
 */
export const MIGRATION_LOCK = 4_727_466;

/** A running instance of the service that a migration waits for. */
export interface OlderInstance {
  readonly id: string;
  /** Address at which other instances reach the instance; null if they cannot reach it. */
  readonly peerUrl: string | null;
  /** The schema of the instance; null if its version registers none. */
  readonly schema: string | null;
  /** Seconds until the instance is treated as ended, unless it sends another heartbeat. */
  readonly secondsLeft: number;
}

/** Options for the migration of a PostgreSQL database, which instances of older versions may use. */
export interface MigrationOptions {
  /** True to migrate although instances run that are not compatible with the new schema. @default false */
  readonly anyway?: boolean;
  /** Maximum time to wait for these instances to end, in milliseconds. @default slightly more than their lifetime */
  readonly patience?: number;
  /** Called once, before the process waits for these instances. */
  readonly onWait?: (instances: readonly OlderInstance[]) => void;
}
