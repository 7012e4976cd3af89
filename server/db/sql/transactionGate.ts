import { Prisma } from "../generated/sqlite/client.ts";
import { providerOf, type SqlClient } from "./sql.ts";

/**
 * The statements that a serializable transaction of PostgreSQL begins with. One that runs alone waits until all open
 * ones have ended, and later ones, of all instances, wait for it.
 *
 * PostgreSQL takes no snapshot for LOCK TABLE, so a transaction that waited here sees everything committed meanwhile. An
 * advisory lock is a SELECT, so a transaction that waited for it would see the state before, and fail again. Requests
 * use the table for nothing else. While a transaction waits to run alone, no other begins: one that hangs must not hold
 * up all of them.
 */
export const gate = (alone: boolean): string =>
  alone
    ? `SET LOCAL lock_timeout = '3s'; LOCK TABLE "_migration" IN EXCLUSIVE MODE`
    : `LOCK TABLE "_migration" IN ROW SHARE MODE`;

/**
 * To be awaited as the first statement of every transaction of Prisma's client, see {@link gate}. SQLite runs one at a
 * time anyway.
 * @param client the client that the transaction was begun with
 * @throws PrismaClientKnownRequestError a lock timeout: another transaction does not end
 */
export async function passGate(client: object, tx: SqlClient, alone: boolean): Promise<void> {
  if (providerOf(client) === "postgres") await tx.$executeRaw(Prisma.raw(gate(alone)));
}
