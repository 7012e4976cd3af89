import type { Services } from "../../services.ts";

/** How long a report counts, in milliseconds (rules section 7). */
const ONLINE_WINDOW = 2 * 60_000;

/** A device that reported after this moment is online, unless it was marked offline since. */
export function onlineSince(services: Services): Date {
  return new Date(services.now().getTime() - ONLINE_WINDOW);
}
