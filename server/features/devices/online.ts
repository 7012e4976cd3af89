import { MINUTE } from "@gatehouse-access/sdk/times";
import type { Services } from "../../services.ts";

/** Maximum age of an online device's last report, in milliseconds (rules section 7). */
const ONLINE_WINDOW = 2 * MINUTE;

/**
 * Returns the time after which an online device must have sent its last report. A device that was marked offline after
 * its report is not online.
 */
export function onlineSince(services: Services): Date {
  return new Date(services.now().getTime() - ONLINE_WINDOW);
}
