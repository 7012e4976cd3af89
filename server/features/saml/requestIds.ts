import type { Services } from "../../services.ts";

/** How long a login may take at the identity provider, in milliseconds. */
const REQUEST_LIFE = 10 * 60_000;
const PURPOSE = "SAML request";

/**
 * Id of a new request to the identity provider. It is its own proof: the end of its life, sealed, so that every
 * instance knows it again, and strangers who begin logins fill no table. Which ones were used stands in the database.
 */
export function newRequestId(services: Services): string {
  const end = services.now().getTime() + REQUEST_LIFE;
  // An XML id must not begin with a digit.
  return `_${services.sealer.seal(String(end), PURPOSE)}`;
}

/** When the request's life ends; undefined for an id that this service did not make. */
export function requestEnd(services: Services, id: string): Date | undefined {
  try {
    return new Date(Number(services.sealer.open(id.slice(1), PURPOSE)));
  } catch {
    // Whatever it is, it is not ours.
    return undefined;
  }
}
