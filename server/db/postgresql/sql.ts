import { DriverAdapterError } from "@prisma/driver-adapter-utils";
import { type CustomTypesConfig, DatabaseError, type Pool, type PoolClient, types } from "pg";
import { type SharedTransaction, Unsettled } from "../sql/groupCommit.ts";
import type { Sql, SqlClient } from "../sql/sql.ts";
import { gate } from "../sql/transactionGate.ts";
import { inOpenTransaction, type StatementNames } from "./statementNames.ts";

type Parsers = Readonly<Record<number, (text: string) => unknown>>;

const typesOf = (parsers: Parsers): CustomTypesConfig => ({
  getTypeParser: (oid, format) => parsers[oid] ?? types.getTypeParser(oid, format),
});

/** Converts a PostgreSQL timestamp in UTC, such as `2026-01-02 03:04:05.67`, to the time format of the API. */
const wireTime = (text: string): string =>
  `${text.slice(0, 10)}T${text.slice(11, 19)}.${text.slice(20).padEnd(3, "0")}Z`;

/** Parsers of column values. They return the same JavaScript types as Prisma's client. */
const TYPES = typesOf({
  [types.builtins.INT8]: BigInt,
  [types.builtins.TIMESTAMP]: (text) => new Date(wireTime(text)),
});

/** Parsers of column values that return times as strings in the API's format. */
export const WIRE_TYPES = typesOf({ [types.builtins.INT8]: BigInt, [types.builtins.TIMESTAMP]: wireTime });

const toPostgresql = (value: unknown): unknown =>
  value instanceof Date ? value.toISOString().slice(0, -1) : value;

/**
 * Creates an SQL client that executes statements on PostgreSQL without Prisma's client and its adapter. Throws the same
 * errors as the adapter.
 */
export function postgresqlSql(
  connection: Pick<PoolClient, "query">,
  nameOf: StatementNames["of"],
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

/**
 * PostgreSQL's error codes that the service distinguishes: serialization failure, deadlock, unique violation and
 * foreign key violation.
 */
const KINDS: Readonly<
  Record<string, "TransactionWriteConflict" | "UniqueConstraintViolation" | "ForeignKeyConstraintViolation">
> = {
  "40001": "TransactionWriteConflict",
  "40P01": "TransactionWriteConflict",
  "23505": "UniqueConstraintViolation",
  "23503": "ForeignKeyConstraintViolation",
};

/** Converts a PostgreSQL error to the error that the adapter would throw. Returns a connection error unchanged. */
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

/** Ignores an error that a different promise or listener also reports. */
const ignore = () => {};

/**
 * Returns a function that sends statements on a connection. The function collects the statements of one turn of the
 * event loop, and writes them to the connection together.
 */
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
 * Begins a serializable transaction on a connection of the pool. Does not wait for the response to the BEGIN, so that
 * the first statement can be sent immediately. If the BEGIN fails, nothing is committed.
 * @param alone see {@link gate}
 */
export async function beginSerializable(
  pool: Pool,
  names: StatementNames,
  alone: boolean,
): Promise<SharedTransaction> {
  const connection = await pool.connect();
  // The connection error is ignored here, because the caller of the statement in progress receives it.
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
  const sql = postgresqlSql(sender, names.of);
  return {
    sql: {
      $queryRaw: (query) => inOpenTransaction(names, () => sql.$queryRaw(query)),
      $executeRaw: (statement) => inOpenTransaction(names, () => sql.$executeRaw(statement)),
      leaveToCommit: (change) => sent.add(change),
    },
    send: (statement) => sent.add(send(statement)),
    settle: () => sent.settle(),
    async commit() {
      const committed = send("COMMIT");
      committed.catch(ignore);
      await sent.settle();
      const { command } = await committed;
      // If a job ignored the error of a failed statement, PostgreSQL rolls back at the COMMIT and returns the command
      // ROLLBACK.
      if (command !== "COMMIT") throw new Error(`PostgreSQL returned ${command} for COMMIT`);
      release(false);
    },
    async rollback(cause) {
      // If the rollback fails, the connection is lost, and PostgreSQL rolls back the transaction itself.
      const broken = await connection.query("ROLLBACK").then(
        () => false,
        () => true,
      );
      release(broken);
      // The first failed statement caused all later failures, so its error is thrown.
      await begun;
      await sent.settle();
      throw cause;
    },
  };
}
