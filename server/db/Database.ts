import type { PrismaClient } from "./generated/sqlite/client.ts";
import type { Snapshots } from "./snapshotSqlite.ts";

/** An open database of the service. */
export interface Database {
  readonly client: PrismaClient;
  /** Names of the migrations that opening it applied. */
  readonly migrated: readonly string[];
  /** Undefined on PostgreSQL, which has programs of its own for that. */
  readonly snapshots: Snapshots | undefined;
  /** Writes something that changes nothing, as durably as anything else; rejects when the database cannot be written. */
  tryWrite(): Promise<void>;
  /** Ends the use of the database. Statements that have begun end first; none can follow. */
  close(): Promise<void>;
}

/** Where the service keeps its data. */
export type DatabaseLocation =
  | {
      /** Path of the SQLite file; made when there is none. It then belongs to this process alone. */
      readonly file: string;
    }
  | {
      /** postgresql://…, with the password if one is needed. Several processes may use it. */
      readonly url: string;
      /** Most connections that this process opens. */
      readonly connections: number;
      /** How long the database may give no sign of life, in milliseconds; left out: as the service has it. */
      readonly silence?: number;
    };
