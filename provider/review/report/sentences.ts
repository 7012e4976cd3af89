import { ANY_ADDRESS, ANY_LOGIN } from "@gatehouse-access/sdk/policy";
import { counted, printable } from "../words/words.ts";
import type { MemberChange, NamespaceReview, ReviewedAccess, Revision, Revisions } from "./review.ts";

/** How a report writes what comes from the service. */
export interface Style {
  /** A name that stands out: in backticks, in bold, or as it is. */
  readonly name: (name: string) => string;
  /** Words that hold names. */
  readonly text: (text: string) => string;
}

/** Everything as it is. */
export const PLAIN: Style = { name: (name) => name, text: (text) => text };

/** Names that a sentence lists before it counts the others. */
const LISTED = 3;

/** `a`, `a and b`, `a, b and 4 more`. */
export function listed(names: readonly string[], style: Style): string {
  const shown = names
    .slice(0, names.length === LISTED + 1 ? LISTED + 1 : LISTED)
    .map((name) => style.name(printable(name)));
  const more = names.length - shown.length;
  if (more > 0) return `${shown.join(", ")} and ${more} more`;
  const last = shown.pop() ?? "";
  return shown.length === 0 ? last : `${shown.join(", ")} and ${last}`;
}

/** The same with the one that stands for every other last, in words. */
function withOthers(names: readonly string[], standIn: string, others: string, style: Style): string {
  const named = names.filter((name) => name !== standIn);
  if (named.length === names.length) return listed(named, style);
  if (named.length === 0) return others;
  if (named.length > LISTED) return `${listed(named, style)}, and ${others}`;
  return `${named.map((name) => style.name(printable(name))).join(", ")} and ${others}`;
}

/** `key laptop-alice gains login root on 14 devices tagged prod`. */
export function accessSentence(line: ReviewedAccess, style: Style): string {
  const many = line.keys.length > 1;
  const who = `${many ? `${line.keys.length} keys` : "key"} ${listed(
    line.keys.map(({ name }) => name),
    style,
  )}`;
  const verb = { gained: many ? "gain" : "gains", lost: many ? "lose" : "loses" }[line.change];
  const logins = line.anyLogin
    ? "every login"
    : `${line.logins.length > 1 ? "logins" : "login"} ${withOthers(line.logins, ANY_LOGIN, "any other", style)}`;
  const from = line.anyAddress
    ? ""
    : ` from ${withOthers(line.addresses, ANY_ADDRESS, "any other address", style)}`;
  return `${who} ${verb} ${logins}${from} on ${style.text(printable(line.where))}`;
}

/** `carla@example.com becomes observer (was administrator)`. */
export function memberSentence({ change, email, from, to }: MemberChange, style: Style): string {
  if (change === "added") return `${style.name(printable(email))} becomes a member, as ${to}`;
  if (change === "removed") return `${style.name(printable(email))} is no member any more (was ${from})`;
  return `${style.name(printable(email))} becomes ${to} (was ${from})`;
}

/** What access was evaluated for. */
export function domainSentence({ domain }: NamespaceReview, style: Style): string {
  const { devices, keys, rules, sessions, logins, addresses } = domain;
  const counts = `${counted(devices, "device")}, ${counted(keys, "key")} and ${counted(rules, "firewall rule")}`;
  const names = withOthers(logins, ANY_LOGIN, "any other", style);
  const places = addresses.some((address) => address !== ANY_ADDRESS)
    ? `the addresses ${withOthers(addresses, ANY_ADDRESS, "any other", style)}`
    : "any address";
  const seen = sessions > 0 ? ` (the latest ${counted(sessions, "session")} among their sources)` : "";
  return `Evaluated for ${counts}, the logins ${names}, ${places}${seen}.`;
}

/** Digits of a commit's id that people are shown. */
const SHORT = 10;

/** `origin/main (0123456789)`; of a commit that is given by its id, the id alone. */
function revisionInWords({ name, commit }: Revision, style: Style): string {
  if (commit === null) return style.text(name);
  const id = style.name(commit.slice(0, SHORT));
  return commit.startsWith(name) ? id : `${style.name(printable(name))} (${id})`;
}

/** `: origin/main (0123456789) to the working folder`, for a title. */
export const revisionsTitle = ({ base, head }: Revisions, style: Style): string =>
  `: ${revisionInWords(base, style)} to ${revisionInWords(head, style)}`;

/** That a review compares two revisions, and what that leaves out. */
export const revisionsSentence = ({ base, head }: Revisions, style: Style): string =>
  `From ${revisionInWords(base, style)} to ${revisionInWords(head, style)}${
    head.commit === null ? ", uncommitted changes included" : ""
  }. What else the live namespace differs in, such as drift or changes that are not applied yet, is left out.`;

/** `nobody else changes`, or that nothing does. */
export const restSentence = (access: readonly ReviewedAccess[]): string =>
  access.length === 0 ? "Nobody gains or loses access." : "Nobody else gains or loses access.";
