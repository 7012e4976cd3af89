import { DriverAdapterError, type SqlDriverAdapter, type SqlQueryable } from "@prisma/driver-adapter-utils";
import { DatabaseError } from "pg";
import type { SqlClient } from "../sql/sql.ts";

/**
 * Maximum number of prepared statements per connection. PostgreSQL parses statements above this limit at each
 * execution. A limit is necessary, because a statement with a list of ids has a different SQL text for each length of
 * the list.
 */
const MAXIMUM_PREPARED = 300;

/**
 * The names of prepared statements, so that PostgreSQL parses and plans each statement once per connection. Statements
 * without values, which begin and end transactions, have no name: PostgreSQL parses them faster than it prepares them.
 * Searches by a pattern have no name, because PostgreSQL must plan each search with its pattern: whether the pattern
 * index saves time depends on how many rows of all namespaces match the pattern.
 */
export class StatementNames {
  readonly #names = new Map<string, string>();
  #generation = 0;

  /** Returns the name under which a statement is prepared; empty for a statement that is not prepared. */
  readonly of = ({ sql, args }: { readonly sql: string; readonly args: readonly unknown[] }): string => {
    if (args.length === 0 || sql.includes(" LIKE ")) return "";
    const known = this.#names.get(sql);
    if (known !== undefined) return known;
    if (this.#names.size >= MAXIMUM_PREPARED) return "";
    const name = `gatehouse_${this.#generation}_${this.#names.size}`;
    this.#names.set(sql, name);
    return name;
  };

  /** Gives all statements new names, so that each connection prepares them again. */
  renew(): void {
    this.#generation += 1;
    this.#names.clear();
  }
}

/** PostgreSQL's code of the error about a stale plan. PostgreSQL translates the message, but not this code. */
const FEATURE_NOT_SUPPORTED = "0A000";

/**
 * Returns true if a statement failed because a migration changed its columns after this connection had prepared it. A
 * newer version of the service may migrate the database while this version runs. Errors of Prisma's adapter lack the
 * routine of PostgreSQL that failed. Their code has no other cause, because the service uses only supported features.
 */
function isStalePlan(error: unknown): boolean {
  if (error instanceof DriverAdapterError) return error.cause.originalCode === FEATURE_NOT_SUPPORTED;
  return error instanceof DatabaseError && error.routine === "RevalidateCachedQuery";
}

/** Runs a statement outside a transaction, and repeats it under a new name if its plan is stale. */
async function repeatStale<T>(names: StatementNames, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (!isStalePlan(error)) throw error;
    names.renew();
    return run();
  }
}

/** Runs a statement in a transaction. A stale plan is treated as a conflict, so that the transaction is repeated. */
export async function inOpenTransaction<T>(names: StatementNames, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (!isStalePlan(error)) throw error;
    names.renew();
    // The log of a transaction that fails in each attempt shows PostgreSQL's code.
    throw new DriverAdapterError({
      kind: "TransactionWriteConflict",
      originalCode: FEATURE_NOT_SUPPORTED,
    });
  }
}

type Runner = typeof repeatStale;

/** Returns an SQL client whose statements outside transactions are repeated if their plans are stale. */
export const repeatingStalePlans = (client: SqlClient, names: StatementNames): SqlClient => ({
  $queryRaw: (query) => repeatStale(names, () => client.$queryRaw(query)),
  $executeRaw: (statement) => repeatStale(names, () => client.$executeRaw(statement)),
});

/** Changes an adapter of Prisma, so that statements and transactions are repeated if their plans are stale. */
export function repeatStalePlans(adapter: SqlDriverAdapter, names: StatementNames): void {
  const change = (queryable: SqlQueryable, runner: Runner) => {
    const query = queryable.queryRaw.bind(queryable);
    const execute = queryable.executeRaw.bind(queryable);
    queryable.queryRaw = (statement) => runner(names, () => query(statement));
    queryable.executeRaw = (statement) => runner(names, () => execute(statement));
  };
  change(adapter, repeatStale);
  const begin = adapter.startTransaction.bind(adapter);
  adapter.startTransaction = async (level) => {
    const transaction = await begin(level);
    change(transaction, inOpenTransaction);
    return transaction;
  };
}
