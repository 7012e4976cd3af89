import { Prisma } from "./generated/sqlite/client.ts";

/** The clients whose database, PostgreSQL, runs several transactions at a time. */
const gated = new WeakSet<object>();

/** Lets {@link passGate} order the transactions of a client of PostgreSQL. */
export function gateTransactions(client: object): void {
  gated.add(client);
}

// PostgreSQL takes no snapshot for LOCK TABLE, so a transaction that waited here sees everything committed meanwhile.
// An advisory lock is a SELECT, so a transaction that waited for it would see the state before, and fail again.
// Requests use the table for nothing else.
const TOGETHER = Prisma.sql`LOCK TABLE "_migration" IN ROW SHARE MODE`;
const ALONE = Prisma.sql`LOCK TABLE "_migration" IN EXCLUSIVE MODE`;
// While a transaction waits to run alone, no other begins: one that hangs must not hold up all of them.
const PATIENCE = Prisma.sql`SET LOCAL lock_timeout = '3s'`;

type Connection = Pick<Prisma.TransactionClient, "$executeRaw">;

/**
 * To be awaited as the first statement of every serializable transaction. A transaction that runs alone waits until all
 * open ones have ended, and later ones, of all instances, wait for it. SQLite runs one at a time anyway.
 * @param client the client that the transaction was begun with
 * @throws PrismaClientKnownRequestError a lock timeout: another transaction does not end
 */
export async function passGate(client: object, tx: Connection, alone: boolean): Promise<void> {
  if (!gated.has(client)) return;
  if (alone) await tx.$executeRaw(PATIENCE);
  await tx.$executeRaw(alone ? ALONE : TOGETHER);
}
