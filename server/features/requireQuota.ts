import { ForbiddenError } from "../errors.ts";

/**
 * Refuses an addition that would exceed a limit.
 * @param limit 0 or less: any number
 * @param count counts the present objects, if there is a limit; it may stop counting at the limit
 * @throws ForbiddenError with the message, when the limit is reached
 */
export async function requireQuota(
  limit: number,
  count: () => Promise<number>,
  message: string,
): Promise<void> {
  if (limit > 0 && (await count()) >= limit) throw new ForbiddenError(message);
}
