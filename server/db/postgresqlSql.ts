import { DriverAdapterError } from "@prisma/driver-adapter-utils";
import { type CustomTypesConfig, DatabaseError, type Pool, type PoolClient, types } from "pg";
import type { SqlClient } from "./readRows.ts";
import type { Sql } from "./sql.ts";
import { gate } from "./transactionGate.ts";

/** Gives the name under which a statement is prepared; empty for one that is not. */
export type NameOf = (query: { readonly sql: string; readonly args: readonly unknown[] }) => string;

/** The values of columns as Prisma's client gives them. Its times have no time zone: they are UTC. */
const PARSERS: Readonly<Record<number, (text: string) => unknown>> = {
  [types.builtins.INT8]: BigInt,
  [types.builtins.TIMESTAMP]: (text) => new Date(`${text.replace(" ", "T")}Z`),
};
const TYPES: CustomTypesConfig = {
  getTypeParser: (oid, format) => PARSERS[oid] ?? types.getTypeParser(oid, format),
};

const toPostgresql = (value: unknown): unknown =>
  value instanceof Date ? value.toISOString().slice(0, -1) : value;

/** SQL for PostgreSQL without Prisma's client and its adapter, whose errors it gives. */
export function postgresqlSql(connections: Pool | PoolClient, nameOf: NameOf): SqlClient {
  const run = async ({ text, values }: Sql) => {
    try {
      return await connections.query({
        name: nameOf({ sql: text, args: values }),
        text,
        values: values.map(toPostgresql),
        types: TYPES,
      });
    } catch (error) {
      throw adapterError(error);
    }
  };
  return {
    $queryRaw: async <Rows>(query: Sql) => (await run(query)).rows as Rows,
    $executeRaw: async (statement) => (await run(statement)).rowCount ?? 0,
  };
}

/** PostgreSQL's codes of a transaction that gave way to another one: a serialization failure, a deadlock. */
const WRITE_CONFLICTS: ReadonlySet<string | undefined> = new Set(["40001", "40P01"]);

/** The adapter's error for one of PostgreSQL; one of the connection stays as it is. */
function adapterError(error: unknown): unknown {
  if (!(error instanceof DatabaseError)) return error;
  const { code = "", severity = "ERROR", message, detail, column, hint } = error;
  const original = { originalCode: code, originalMessage: message };
  return new DriverAdapterError(
    WRITE_CONFLICTS.has(code)
      ? { ...original, kind: "TransactionWriteConflict" }
      : { ...original, kind: "postgres", code, severity, message, detail, column, hint },
  );
}

/** Whoever waits for a connection's statement is told what befalls it; the pool hears of idle ones. */
const ignore = () => {};

/**
 * Runs work as a serializable transaction on a connection of the pool. Its beginning, and the work's first statement,
 * go to PostgreSQL together.
 * @param alone see {@link gate}
 */
export async function runSerializable<T>(
  pool: Pool,
  nameOf: NameOf,
  work: (tx: SqlClient) => Promise<T>,
  alone: boolean,
): Promise<T> {
  const connection = await pool.connect();
  connection.on("error", ignore);
  let broken = false;
  try {
    return await commit(connection, nameOf, work, alone);
  } catch (error) {
    await connection.query("ROLLBACK").catch(() => {
      // It is lost, and PostgreSQL rolls back by itself.
      broken = true;
    });
    throw adapterError(error);
  } finally {
    connection.off("error", ignore);
    connection.release(broken);
  }
}

async function commit<T>(
  connection: PoolClient,
  nameOf: NameOf,
  work: (tx: SqlClient) => Promise<T>,
  alone: boolean,
): Promise<T> {
  const { stream } = connection.connection;
  stream.cork();
  process.nextTick(() => stream.uncork());
  const begun = connection.query(`BEGIN ISOLATION LEVEL SERIALIZABLE; ${gate(alone)}`);
  begun.catch(ignore);
  const ended = work(postgresqlSql(connection, nameOf));
  ended.catch(ignore);
  // Where it could not begin, the work's own error says only that.
  await begun.catch(async (error: unknown) => {
    await ended.catch(ignore);
    throw error;
  });
  const result = await ended;
  const { command } = await connection.query("COMMIT");
  if (command !== "COMMIT") throw new Error("a transaction went on after one of its statements had failed");
  return result;
}
