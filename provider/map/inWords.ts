import { type AccessDomain, ANY_ADDRESS, ANY_LOGIN } from "@gatehouse-access/sdk/policy";

/** What the map says of {@link ANY_ADDRESS}. */
const ANYWHERE = "any address that no rule names";

/** An address of a domain as people read it. */
export const addressInWords = (address: string): string => (address === ANY_ADDRESS ? ANYWHERE : address);

/** What the map says of {@link ANY_LOGIN}. */
const ANYBODY = "any login that no pattern names";

/** A login name of a domain as people read it. */
export const loginInWords = (login: string): string => (login === ANY_LOGIN ? ANYBODY : login);

/** What access was evaluated for, as a sentence. */
export function domainInWords({ logins, addresses }: AccessDomain): string {
  const from = addresses.map(addressInWords);
  return `Looked at: ${counted(logins.map(loginInWords), "login")}, from ${counted(from, "address", "addresses")}.`;
}

/** Most texts that are listed. */
const LISTED_MAX = 8;

function counted(texts: readonly string[], one: string, many = `${one}s`): string {
  const more = texts.length > LISTED_MAX ? [`and ${texts.length - LISTED_MAX} more`] : [];
  const listed = [...texts.slice(0, LISTED_MAX), ...more].join(", ");
  return `${texts.length} ${texts.length === 1 ? one : many}${listed === "" ? "" : ` (${listed})`}`;
}
