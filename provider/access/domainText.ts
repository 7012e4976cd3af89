import { ANY_ADDRESS, ANY_LOGIN } from "@gatehouse-access/sdk/policy";
import { counted, listText } from "../words/phrases.ts";
import { printable } from "../words/printable.ts";
import type { AccessView } from "./view.ts";

/** What was looked at, and how the inquiry was understood: lines for people. */
export function domainLines({ estate, inquiry, devices, keys, domain, notes }: AccessView): string[] {
  const { logins, addresses } = domain;
  const sources = `by patterns, and ${counted(estate.seen.sessions, "session")} of late`;
  const loginSource = inquiry.logins.length > 0 ? "as asked" : sources;
  const addressSource = inquiry.addresses.length > 0 ? "as asked" : sources;
  const standIn = addresses.includes(ANY_ADDRESS)
    ? `; ${ANY_ADDRESS} stands for every address that no rule names`
    : "";
  const anyLogin = logins.includes(ANY_LOGIN)
    ? `; ${ANY_LOGIN} stands for every login name that no pattern names`
    : "";
  return [
    `Namespace ${estate.tenant}: ${part(keys, estate.policy.keys, "key")}, ` +
      `${part(devices, estate.policy.devices, "accepted device")}, ${counted(estate.policy.rules.length, "firewall rule")}`,
    `${counted(logins.length, "login name")} (${loginSource}): ${listText(logins)}${anyLogin}`,
    `${addresses.length} ${addresses.length === 1 ? "address" : "addresses"} (${addressSource}): ${listText(addresses)}${standIn}`,
    ...notes,
  ].map(printable);
}

function part(asked: readonly unknown[], all: readonly unknown[], what: string): string {
  return asked.length === all.length
    ? counted(all.length, what)
    : `${asked.length} of ${counted(all.length, what)}`;
}

/** What could not be read and so is missing in the answer: lines for people. */
export const unknownLines = ({ estate }: AccessView): string[] =>
  [...estate.unseen, ...estate.unknown].map((sentence) => printable(`Not known: ${sentence}`));
