import { MINUTE } from "@gatehouse-access/sdk/times";
import type { Services } from "../../services.ts";

/** Maximum age of an online device's last report, in milliseconds (rules section 7). */
const ONLINE_WINDOW = 2 * MINUTE;

/**
 * Returns the time after which a device must have sent its last report to be online. A device that was marked offline
 * after its last report is not online.
 */
export function onlineSince(services: Services): Date {
  return new Date(services.now().getTime() - ONLINE_WINDOW);
}
