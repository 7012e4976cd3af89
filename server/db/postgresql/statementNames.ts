import { DriverAdapterError, type SqlDriverAdapter, type SqlQueryable } from "@prisma/driver-adapter-utils";
import { DatabaseError } from "pg";
import type { SqlClient } from "../sql/sql.ts";

/**
 * Maximum number of prepared statements per connection. After this number is reached, PostgreSQL parses every further
 * statement at each execution. A limit is necessary because the SQL of a statement with a list of ids differs for each
 * length of the list.
 */
const MAXIMUM_PREPARED = 300;

/**
 * The names of prepared statements. If a statement has a name, PostgreSQL parses and plans it once per connection. Two
 * kinds of statements have no name. The first kind is statements without values. They begin and end transactions, and
 * PostgreSQL parses them faster than it prepares them. The second kind is searches by a pattern. PostgreSQL must plan
 * each search with its pattern, because the pattern determines whether the pattern index saves time. The index saves
 * time only if few rows of all namespaces match the pattern.
 */
export class StatementNames {
  readonly #names = new Map<string, string>();
  #generation = 0;

  /**
   * Returns the name under which a statement is prepared. Returns an empty string if the statement is not prepared.
   */
  readonly of = ({ sql, args }: { readonly sql: string; readonly args: readonly unknown[] }): string => {
    if (args.length === 0 || sql.includes(" LIKE ")) return "";
    const known = this.#names.get(sql);
    if (known !== undefined) return known;
    if (this.#names.size >= MAXIMUM_PREPARED) return "";
    const name = `gatehouse_${this.#generation}_${this.#names.size}`;
    this.#names.set(sql, name);
    return name;
  };

  /** Gives all statements new names, so that each connection prepares the statements again. */
  renew(): void {
    this.#generation += 1;
    this.#names.clear();
  }
}

/**
 * PostgreSQL's error code for a stale plan: a migration changed the columns of a statement after the statement was
 * prepared. PostgreSQL translates the error message, but not this code.
 */
const FEATURE_NOT_SUPPORTED = "0A000";

/**
 * Returns true if a statement failed because a migration changed its columns after this connection prepared the
 * statement. A newer version of the service may migrate the database while this version runs. An error from PostgreSQL
 * contains the PostgreSQL routine that failed. An error from Prisma's adapter contains only an error code. In this
 * service, only a stale plan causes this code, because the service uses only supported features.
 */
function isStalePlan(error: unknown): boolean {
  if (error instanceof DriverAdapterError) return error.cause.originalCode === FEATURE_NOT_SUPPORTED;
  return error instanceof DatabaseError && error.routine === "RevalidateCachedQuery";
}

/** Runs a statement outside a transaction. If the plan is stale, runs the statement again under a new name. */
async function repeatStale<T>(names: StatementNames, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (!isStalePlan(error)) throw error;
    names.renew();
    return run();
  }
}

/** Runs a statement in a transaction. Treats a stale plan as a conflict, so that the transaction is retried. */
export async function inOpenTransaction<T>(names: StatementNames, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (!isStalePlan(error)) throw error;
    names.renew();
    // If every attempt of the transaction fails, the log shows PostgreSQL's code.
    throw new DriverAdapterError({
      kind: "TransactionWriteConflict",
      originalCode: FEATURE_NOT_SUPPORTED,
    });
  }
}

type Runner = typeof repeatStale;

/** Returns an SQL client that retries a statement outside a transaction if its plan is stale. */
export const repeatingStalePlans = (client: SqlClient, names: StatementNames): SqlClient => ({
  $queryRaw: (query) => repeatStale(names, () => client.$queryRaw(query)),
  $executeRaw: (statement) => repeatStale(names, () => client.$executeRaw(statement)),
});

/** Changes a Prisma adapter, so that statements and transactions with a stale plan are retried. */
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
