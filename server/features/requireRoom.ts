import { ForbiddenError } from "../errors.ts";

/**
 * Refuses what would be one more than there may be.
 * @param limit 0 or less: any number
 * @param count how many there are; asked for only where there is a limit, and needs to look no further than it
 * @throws ForbiddenError with the message, where there are as many
 */
export async function requireRoom(
  limit: number,
  count: () => Promise<number>,
  message: string,
): Promise<void> {
  if (limit > 0 && (await count()) >= limit) throw new ForbiddenError(message);
}
