import type { Services } from "../../services.ts";

/** How long a login may take at the identity provider, in milliseconds. */
const REQUEST_LIFE = 10 * 60_000;
const PURPOSE = "SAML request";

/**
 * Id of a new request to the identity provider: its expiry, sealed. Every instance can verify the id without a row in
 * the database, so strangers who begin logins fill no table. Used ids are stored in the database.
 */
export function newRequestId(services: Services): string {
  const end = services.now().getTime() + REQUEST_LIFE;
  // An XML id must not begin with a digit.
  return `_${services.sealer.seal(String(end), PURPOSE)}`;
}

/** When the request expires; undefined for an id that this service did not make. */
export function requestEnd(services: Services, id: string): Date | undefined {
  try {
    return new Date(Number(services.sealer.open(id.slice(1), PURPOSE)));
  } catch {
    // The id was not made by this service.
    return undefined;
  }
}
