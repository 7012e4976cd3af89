import type { Transaction } from "../transaction.ts";

/** The tags that anything in the namespace carries, in alphabetical order, or those of the given ones. */
export async function knownTags(
  tx: Transaction,
  tenantId: string,
  among?: readonly string[],
): Promise<string[]> {
  const where = { tenantId, ...(among && { tag: { in: [...among] } }) };
  // Grouped, since Prisma reads every row to make `distinct` on SQLite.
  const ofDevices = await tx.deviceTag.groupBy({ by: ["tag"], where });
  const ofKeys = await tx.publicKeyTag.groupBy({ by: ["tag"], where });
  return [...new Set([...ofDevices, ...ofKeys].map((row) => row.tag))].sort();
}
