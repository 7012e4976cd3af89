import { Prisma } from "../generated/sqlite/client.ts";
import { providerOf, type SqlClient } from "./sql.ts";

/**
 * Returns the first statements of a serializable transaction on PostgreSQL. A transaction that runs alone
 * waits until all open transactions have ended. Later transactions, of all instances, wait for it.
 *
 * PostgreSQL takes no snapshot for LOCK TABLE, so a transaction that waited here sees all changes that were committed
 * meanwhile. An advisory lock needs a SELECT, so a transaction that waited for it would see the earlier state, and
 * fail again. Requests use the table for nothing else. While a transaction waits to run alone, no other begins. The
 * lock timeout prevents a hanging transaction from delaying all of them.
 */
export const gate = (alone: boolean): string =>
  alone
    ? `SET LOCAL lock_timeout = '3s'; LOCK TABLE "_migration" IN EXCLUSIVE MODE`
    : `LOCK TABLE "_migration" IN ROW SHARE MODE`;

/**
 * Must be awaited as the first statement of every transaction of Prisma's client, see {@link gate}. SQLite runs one
 * transaction at a time anyway.
 * @param client the client that began the transaction
 * @throws PrismaClientKnownRequestError lock timeout: another transaction does not end
 */
export async function passGate(client: object, tx: SqlClient, alone: boolean): Promise<void> {
  if (providerOf(client) === "postgres") await tx.$executeRaw(Prisma.raw(gate(alone)));
}
