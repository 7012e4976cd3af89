import { MINUTE } from "@gatehouse-access/sdk/times";
import type { PrismaClient } from "./generated/sqlite/client.ts";
import type { Snapshots } from "./sqlite/snapshots.ts";

/** An open database of the service. */
export interface Database {
  readonly client: PrismaClient;
  /** Names of the migrations that were applied when the database was opened. */
  readonly migrated: readonly string[];
  /**
   * The database schema of this version of the service: the name of its newest migration. Undefined on SQLite, because
   * no other process uses the database.
   */
  readonly schema: string | undefined;
  /** The reason why searches for device names use no index; undefined if the searches use an index. */
  readonly namesUnindexed: string | undefined;
  /** Access to snapshots of the database; undefined on PostgreSQL, which has its own backup programs. */
  readonly snapshots: Snapshots | undefined;
  /** Tests the database with a durable write that changes no data. Rejects if the database cannot be written. */
  tryWrite(): Promise<void>;
  /** Closes the database after all running statements have finished. Later statements fail. */
  close(): Promise<void>;
}

/** The location of the service's database. */
export type DatabaseLocation =
  | {
      /**
       * Path of the SQLite file. The service creates the file if it does not exist. While the file is open, no other
       * process can use it.
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
      /** Maximum time to wait for data from the database, in milliseconds. @default `SILENCE_TIMEOUT` */
      readonly silence?: number;
    };

/**
 * Time after the last heartbeat at which an instance of the service is treated as stopped, in milliseconds. A migration
 * waits until older instances are treated as stopped.
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
  /** Address at which other instances can connect to this instance. Null if they cannot connect. */
  readonly peerUrl: string | null;
  /**
   * The schema of the instance: the name of its newest migration. Null if the version of the instance does not register
   * its schema.
   */
  readonly schema: string | null;
  /** Seconds until the instance is treated as stopped, unless it sends another heartbeat. */
  readonly secondsLeft: number;
}

/** Options for the migration of a PostgreSQL database. Instances of older versions may be using the database. */
export interface MigrationOptions {
  /** True to migrate even if instances are running that are not compatible with the new schema. @default false */
  readonly anyway?: boolean;
  /**
   * Maximum time to wait until incompatible instances have stopped, in milliseconds.
   * @default slightly more than the lifetime of an instance
   */
  readonly patience?: number;
  /** Called once, before the process waits for incompatible instances. */
  readonly onWait?: (instances: readonly OlderInstance[]) => void;
}
