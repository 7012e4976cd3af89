import { ForbiddenError } from "../errors.ts";

/**
 * Checks that a namespace or device can have one more object of a kind, such as a rule or a tunnel.
 * @param limit maximum number of objects; 0 or less means no limit
 * @param count returns the current number of objects. It is called only if there is a limit, and may stop counting at
 *   the limit.
 * @throws ForbiddenError the limit is reached; the error has the given message
 */
export async function requireQuota(
  limit: number,
  count: () => Promise<number>,
  message: string,
): Promise<void> {
  if (limit > 0 && (await count()) >= limit) throw new ForbiddenError(message);
}
