import { MINUTE } from "@gatehouse-access/sdk/times";
import type { Services } from "../../services.ts";

/** Maximum duration of a login at the identity provider, in milliseconds. */
const REQUEST_LIFE = 10 * MINUTE;
const PURPOSE = "SAML request";

/**
 * Returns the id of a new request to the identity provider. The id is the encrypted expiry time of the request. Every
 * instance can verify the id without a database row, so clients that start many logins cannot fill a table. The
 * database stores only the ids of used requests.
 */
export function newRequestId(services: Services): string {
  const end = services.now().getTime() + REQUEST_LIFE;
  // An XML id must not begin with a digit.
  return `_${services.sealer.seal(String(end), PURPOSE)}`;
}

/** Returns the expiry time of a request. Returns undefined if this service did not create the id. */
export function requestEnd(services: Services, id: string): Date | undefined {
  try {
    return new Date(Number(services.sealer.open(id.slice(1), PURPOSE)));
  } catch {
    // This service did not create the id.
    return undefined;
  }
}
