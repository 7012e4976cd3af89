import { DriverAdapterError } from "@prisma/driver-adapter-utils";
import { type CustomTypesConfig, DatabaseError, type Pool, type PoolClient, types } from "pg";
import { type SharedTransaction, Unsettled } from "../sql/groupCommit.ts";
import type { Sql, SqlClient } from "../sql/sql.ts";
import { gate } from "../sql/transactionGate.ts";

/** Gives the name under which a statement is prepared; empty for one that is not. */
export type NameOf = (query: { readonly sql: string; readonly args: readonly unknown[] }) => string;

type Parsers = Readonly<Record<number, (text: string) => unknown>>;

const typesOf = (parsers: Parsers): CustomTypesConfig => ({
  getTypeParser: (oid, format) => parsers[oid] ?? types.getTypeParser(oid, format),
});

/** A time of the database, `2026-01-02 03:04:05.67` in UTC, as the wire has it. */
const wireTime = (text: string): string =>
  `${text.slice(0, 10)}T${text.slice(11, 19)}.${text.slice(20).padEnd(3, "0")}Z`;

/** The values of columns as Prisma's client gives them. */
const TYPES = typesOf({
  [types.builtins.INT8]: BigInt,
  [types.builtins.TIMESTAMP]: (text) => new Date(wireTime(text)),
});

/** With times as the wire has them. */
export const WIRE_TYPES = typesOf({ [types.builtins.INT8]: BigInt, [types.builtins.TIMESTAMP]: wireTime });

const toPostgresql = (value: unknown): unknown =>
  value instanceof Date ? value.toISOString().slice(0, -1) : value;

/** SQL for PostgreSQL without Prisma's client and its adapter, whose errors it gives. */
export function postgresqlSql(
  connection: Pick<PoolClient, "query">,
  nameOf: NameOf,
  columnTypes: CustomTypesConfig = TYPES,
): SqlClient {
  const run = ({ text, values }: Sql) =>
    connection
      .query({
        name: nameOf({ sql: text, args: values }),
        text,
        values: values.map(toPostgresql),
        types: columnTypes,
      })
      .catch((error: unknown) => {
        throw adapterError(error);
      });
  return {
    $queryRaw: async <Rows>(query: Sql) => (await run(query)).rows as Rows,
    $executeRaw: async (statement) => (await run(statement)).rowCount ?? 0,
  };
}

/** PostgreSQL's codes of errors that have a meaning here: a serialization failure, a deadlock, a unique value, a reference. */
const KINDS: Readonly<
  Record<string, "TransactionWriteConflict" | "UniqueConstraintViolation" | "ForeignKeyConstraintViolation">
> = {
  "40001": "TransactionWriteConflict",
  "40P01": "TransactionWriteConflict",
  "23505": "UniqueConstraintViolation",
  "23503": "ForeignKeyConstraintViolation",
};

/** The adapter's error for one of PostgreSQL; one of the connection stays as it is. */
function adapterError(error: unknown): unknown {
  if (!(error instanceof DatabaseError)) return error;
  const { code = "", severity = "ERROR", message, detail, column, hint } = error;
  const original = { originalCode: code, originalMessage: message };
  const kind = KINDS[code];
  return new DriverAdapterError(
    kind
      ? { ...original, kind }
      : { ...original, kind: "postgres", code, severity, message, detail, column, hint },
  );
}

/** For errors that are told otherwise. */
const ignore = () => {};

/** The connection's statements of one turn of the event loop go to PostgreSQL together. */
function inOneWrite(connection: PoolClient): Pick<PoolClient, "query"> {
  const { stream } = connection.connection;
  return {
    query: ((config: string) => {
      stream.cork();
      process.nextTick(() => stream.uncork());
      return connection.query(config);
    }) as PoolClient["query"],
  };
}

/**
 * Begins a serializable transaction on a connection of the pool, without waiting for it: the first statement follows at
 * once, and nothing is committed where it could not begin.
 * @param alone see {@link gate}
 */
export async function beginSerializable(
  pool: Pool,
  nameOf: NameOf,
  alone: boolean,
): Promise<SharedTransaction> {
  const connection = await pool.connect();
  // Whoever waits for a statement is told what befalls the connection.
  connection.on("error", ignore);
  const release = (broken: boolean) => {
    connection.off("error", ignore);
    connection.release(broken);
  };
  const sender = inOneWrite(connection);
  const send = (statement: string) =>
    sender.query(statement).catch((error: unknown) => {
      throw adapterError(error);
    });
  const begun = send(`BEGIN ISOLATION LEVEL SERIALIZABLE; ${gate(alone)}`);
  begun.catch(ignore);
  const sent = new Unsettled();
  return {
    sql: { ...postgresqlSql(sender, nameOf), leaveToCommit: (change) => sent.add(change) },
    send: (statement) => sent.add(send(statement)),
    settle: () => sent.settle(),
    async commit() {
      const committed = send("COMMIT");
      committed.catch(ignore);
      await sent.settle();
      const { command } = await committed;
      // Else one of the statements had failed, and somebody went on all the same.
      if (command !== "COMMIT") throw new Error(`PostgreSQL answered COMMIT with ${command}`);
      release(false);
    },
    async rollback(cause) {
      // A connection on which that fails is lost, and PostgreSQL rolls back by itself.
      const broken = await connection.query("ROLLBACK").then(
        () => false,
        () => true,
      );
      release(broken);
      // What failed first is why all that came after it failed.
      await begun;
      await sent.settle();
      throw cause;
    },
  };
}
