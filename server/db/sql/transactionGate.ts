import { Prisma } from "../generated/sqlite/client.ts";
import { providerOf, type SqlClient } from "./sql.ts";

/**
 * Returns the first statements of a serializable transaction on PostgreSQL. With `alone`, the transaction waits until
 * all open transactions have ended. Transactions of all instances that begin later wait until this transaction has
 * ended.
 *
 * PostgreSQL takes no snapshot for LOCK TABLE, so a transaction that waited for the lock reads all changes that were
 * committed during the wait. An advisory lock needs a SELECT, which takes a snapshot. A transaction that waited for an
 * advisory lock would read the earlier state, and fail again. Requests do not use the locked table for anything else.
 * While a transaction waits to run alone, no other transaction begins. The lock timeout prevents a hanging transaction
 * from delaying all other transactions.
 */
export const gate = (alone: boolean): string =>
  alone
    ? `SET LOCAL lock_timeout = '3s'; LOCK TABLE "_migration" IN EXCLUSIVE MODE`
    : `LOCK TABLE "_migration" IN ROW SHARE MODE`;

/**
 * Runs the statements of {@link gate} on PostgreSQL. Every transaction of Prisma's client must await this call before
 * its first statement. SQLite does not need these statements, because it runs one transaction at a time.
 * @param client the client that began the transaction
 * @throws PrismaClientKnownRequestError the lock timed out, because another transaction did not end
 */
export async function passGate(client: object, tx: SqlClient, alone: boolean): Promise<void> {
  if (providerOf(client) === "postgres") await tx.$executeRaw(Prisma.raw(gate(alone)));
}
