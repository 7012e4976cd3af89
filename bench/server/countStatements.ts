// Counts the SQL statements that a server sends to its database. The server loads this module before all other modules
// (`node --import`). On a message from the parent process, the module sends the number of statements since the previous
// message.
import { createRequire } from "node:module";
import type Sqlite from "better-sqlite3";
import type Postgresql from "pg";

const require = createRequire(new URL("../../server/package.json", import.meta.url));
const Database = require("better-sqlite3") as typeof Sqlite;
const { Client } = require("pg") as typeof Postgresql;

let count = 0;

/** Replaces methods of a prototype by methods that also count their calls. */
function counted(prototype: object, names: readonly string[]): void {
  const methods = prototype as Record<string, (...values: unknown[]) => unknown>;
  for (const name of names) {
    const method = methods[name];
    if (!method) throw new Error(`The database's library has no method ${name}`);
    methods[name] = function (this: unknown, ...values) {
      count += 1;
      return method.apply(this, values);
    };
  }
}

const scratch = new Database(":memory:");
counted(Object.getPrototypeOf(scratch.prepare("SELECT 1")), ["run", "get", "all"]);
counted(Database.prototype, ["exec"]);
scratch.close();
counted(Client.prototype, ["query"]);

process.on("message", () => {
  process.send?.(count);
  count = 0;
});
// The channel must not keep the process alive.
process.channel?.unref();
