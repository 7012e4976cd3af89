import { Prisma } from "./generated/sqlite/client.ts";

/** The clients whose database runs several transactions at a time. */
const gated = new WeakSet<object>();

/** Lets {@link passGate} order the transactions of a client of PostgreSQL. */
export function gateTransactions(client: object): void {
  gated.add(client);
}

// PostgreSQL takes no snapshot for LOCK TABLE, so whoever waited here sees all that was committed meanwhile; an advisory
// lock is a SELECT, and whoever waited for that would see what was there before, and fail again. No request uses the
// table otherwise.
const TOGETHER = Prisma.sql`LOCK TABLE "_migration" IN ROW SHARE MODE`;
const ALONE = Prisma.sql`LOCK TABLE "_migration" IN EXCLUSIVE MODE`;
// While one waits to be alone, nobody else begins: a transaction that hangs must not hold up all of them.
const PATIENCE = Prisma.sql`SET LOCAL lock_timeout = '3s'`;

type Connection = Pick<Prisma.TransactionClient, "$executeRaw">;

/**
 * To be waited for as the first statement of every serializable transaction. One that runs alone waits until those
 * that have begun are over, and later ones, of all instances, wait for it. SQLite has one at a time anyway.
 * @param client whose transaction it is
 * @throws PrismaClientKnownRequestError a lock timeout: another transaction does not end
 */
export async function passGate(client: object, tx: Connection, alone: boolean): Promise<void> {
  if (!gated.has(client)) return;
  if (alone) await tx.$executeRaw(PATIENCE);
  await tx.$executeRaw(alone ? ALONE : TOGETHER);
}
