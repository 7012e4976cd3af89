import { ForbiddenError } from "../errors.ts";

/**
 * Rejects an addition that would exceed a limit.
 * @param limit 0 or less allows any number
 * @param count returns the current number of objects; called only if a limit applies, and may stop at the limit
 * @throws ForbiddenError the limit is reached; the error has the given message
 */
export async function requireQuota(
  limit: number,
  count: () => Promise<number>,
  message: string,
): Promise<void> {
  if (limit > 0 && (await count()) >= limit) throw new ForbiddenError(message);
}
