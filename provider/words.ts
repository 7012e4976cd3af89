import { printableIssuer } from "@gatehouse-access/sdk/errors";
import type {
  AccessRule,
  AccessSubject,
  ANY_ADDRESS,
  ANY_IPV6_ADDRESS,
  ANY_LOGIN,
  Outcome,
} from "@gatehouse-access/sdk/policy";
import { DAY, HOUR, MINUTE } from "@gatehouse-access/sdk/times";

/** The display form of all logins that no pattern contains literally. */
export const OTHER_LOGINS = "<any other login>";

/**
 * The value of `ANY_LOGIN`. It is repeated here so that this module does not load the policy evaluation, which most
 * commands do not need.
 */
const OTHER_LOGIN: typeof ANY_LOGIN = "otheruser";

/** Returns the display form of a login name. */
export const loginWord = (login: string): string => (login === OTHER_LOGIN ? OTHER_LOGINS : login);

/** The display form of all addresses that no rule and no access policy contains. */
export const OTHER_ADDRESSES = "<any other address>";

/** The values of `ANY_ADDRESS` and `ANY_IPV6_ADDRESS`. */
const OTHER_ADDRESS: typeof ANY_ADDRESS = "192.0.2.1";
const OTHER_IPV6_ADDRESS: typeof ANY_IPV6_ADDRESS = "2001:db8::1";

/**
 * Returns the display form of an evaluated address.
 * @param other the address that represents all other addresses; an empty string if there is no such address
 */
export function addressWord(address: string, other: string = OTHER_ADDRESS): string {
  if (address === OTHER_IPV6_ADDRESS && other !== "") return "<any other IPv6 address>";
  return address === other ? OTHER_ADDRESSES : address;
}

/** The maximum number of names or addresses that {@link listText} shows. */
const LIST_MAX = 4;
/** The number of fingerprint characters that are shown to distinguish keys. */
const FINGERPRINT_WIDTH = 11;

/**
 * Returns a short list for a table: the first few strings and the number of remaining strings, such as `a, b, c, d, 3
 * more`.
 */
export function listText(texts: readonly string[]): string {
  const more = texts.length - LIST_MAX;
  return [...texts.slice(0, LIST_MAX), ...(more > 0 ? [`${more} more`] : [])].join(", ");
}

/**
 * Returns a short list for a sentence: the first strings and the number of remaining strings, such as `a, b and 3
 * more`.
 */
export function firstOf(texts: readonly string[], most: number): string {
  const more = texts.length - most;
  return `${texts.slice(0, most).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/** Returns a string with its first letter in uppercase. */
export const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** Returns a count with its noun: `1 key`, `2 keys`. */
export const counted = (count: number, what: string, several = `${what}s`): string =>
  `${count} ${count === 1 ? what : several}`;

/**
 * Returns a time in the form that reports use: `2026-11-23 07:28 UTC`.
 * @param at RFC 3339 in UTC
 */
export const displayTime = (at: string): string => `${at.slice(0, 10)} ${at.slice(11, 16)} UTC`;

/** Returns the time since an event: `3 days ago`. @param at RFC 3339 */
export const agoText = (at: string, now: Date): string => `${spanText(now.getTime() - Date.parse(at))} ago`;

/** Returns the time until an event: `in 3 days`. @param at RFC 3339 */
export const inText = (at: string, now: Date): string => `in ${spanText(Date.parse(at) - now.getTime())}`;

function spanText(span: number): string {
  if (span >= DAY) return counted(Math.floor(span / DAY), "day");
  if (span >= HOUR) return counted(Math.floor(span / HOUR), "hour");
  return span < MINUTE ? "less than a minute" : counted(Math.floor(span / MINUTE), "minute");
}

/**
 * Returns a time in the form `2026-12-01 18:00 UTC`. Includes the seconds unless they are zero.
 * @param at RFC 3339 in UTC
 */
export function instantText(at: string): string {
  const seconds = at.slice(16, 19);
  return `${at.slice(0, 16).replace("T", " ")}${seconds === ":00" ? "" : seconds} UTC`;
}

/**
 * Returns the expiry time of access in the form that reports use: `until 2026-12-01 18:00 UTC`. @param end RFC 3339 in
 * UTC
 */
export const untilText = (end: string): string => `until ${instantText(end)}`;

/**
 * Returns the display form of a subject. For a key, returns its name with the first characters of its fingerprint,
 * since several keys may share a name. For a user, returns the e-mail address. For a service account, returns its name
 * with the first characters of its id.
 */
export function subjectText(subject: AccessSubject): string {
  if (!("kind" in subject)) return named(subject.name, subject.fingerprint);
  return subject.kind === "user" ? subject.name : `service account ${named(subject.name, subject.id)}`;
}

const named = (name: string, id: string): string =>
  `${name} (${id.slice(0, FINGERPRINT_WIDTH)}…)`.trimStart();

/** The condition under which a login is allowed, in a form that can end a sentence. Empty if there is no condition. */
export const CONDITIONS: Readonly<Record<Outcome, string>> = {
  allow: "",
  deny: "",
  unknown: " if the user has an SSH key",
  reauthentication: " after a re-authentication",
  approval: " after the approval of an SSH key",
};

/** Returns the display form of a rule: `12 (allow, priority 7)`. */
export const ruleText = ({ id, action, priority }: Pick<AccessRule, "id" | "action" | "priority">): string =>
  `${id} (${action}, priority ${priority})`;

/** Maximum width of a column, in characters. Longer cells are not truncated. */
const COLUMN_MAX = 60;

/** Generates the lines of a table, including the line breaks. The first row determines the columns. */
export function* tableLines(rows: readonly (readonly string[])[]): Generator<string> {
  const widths = (rows[0] ?? []).map((_, column) =>
    rows.reduce((width, row) => Math.min(COLUMN_MAX, Math.max(width, row[column]?.length ?? 0)), 0),
  );
  for (const row of rows) {
    yield `${row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd()}\n`;
  }
}

/** The collator. The first comparison creates it, because the creation takes 20 ms and many commands sort nothing. */
let collator: Intl.Collator | undefined;

/**
 * Compares strings in natural order, that is, compares the numbers in them by value. The order is the same on every
 * machine.
 */
export function byText(left: string, right: string): number {
  collator ??= new Intl.Collator("en", { numeric: true });
  // The collator treats some different strings as equal. In this case, a plain comparison determines the order.
  return collator.compare(left, right) || (left < right ? -1 : left > right ? 1 : 0);
}

/** Returns a function that compares items by several strings. The first string that differs determines the order. */
export const byTexts =
  <T>(...textsOf: readonly ((item: T) => string)[]) =>
  (left: T, right: T): number => {
    for (const textOf of textsOf) {
      const order = byText(textOf(left), textOf(right));
      if (order !== 0) return order;
    }
    return 0;
  };

/**
 * The characters without a visible shape: control and format characters, line separators, zero-width characters, lone
 * surrogates and noncharacters. Some of these characters can move the cursor or change the writing direction.
 */
const UNSEEN =
  /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}]/gu;

/**
 * Replaces each invisible character in a string with an escape sequence. Invisible characters can mislead a reader or
 * control an editor.
 */
export const escaping = (text: string, escaped: (character: string) => string): string =>
  text.replaceAll(UNSEEN, escaped);

/** Returns the code point of a character in hexadecimal. */
export const codeOf = (character: string): string => (character.codePointAt(0) ?? 0).toString(16);

/**
 * Escapes a string from an untrusted source, such as a key's name, so that it cannot control a terminal. Invisible
 * characters become escape sequences such as `\u{1b}`.
 */
export const printable = (text: string): string => escaping(text, (character) => `\\u{${codeOf(character)}}`);

/** Returns true for a URL that contains non-ASCII characters. Such a URL can look like a different URL. */
const isLookAlike = (value: unknown): value is string =>
  typeof value === "string" && /^\s*https:/i.test(value) && /[^\x20-\x7e]/.test(value);

/**
 * Returns a value as JSON for output. Returns the argument `nothing` for undefined. If a URL contains non-ASCII
 * characters, its host is written in punycode.
 */
export function valueJson(value: unknown): string {
  if (isLookAlike(value)) return printableIssuer(value);
  const shown = (_key: string, item: unknown) => (isLookAlike(item) ? printableIssuer(item) : item);
  return JSON.stringify(value, shown) ?? "nothing";
}

/** Applies {@link printable} to each line of a string. */
export const printableLines = (text: string): string => text.split("\n").map(printable).join("\n");
