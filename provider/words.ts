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

/** The text that represents all logins that no pattern contains literally. */
export const OTHER_LOGINS = "<any other login>";

/** The value of `ANY_LOGIN`. Most commands need only this module, so it does not load the evaluation of policies. */
const OTHER_LOGIN: typeof ANY_LOGIN = "otheruser";

/** Returns the display text of a login name. */
export const loginWord = (login: string): string => (login === OTHER_LOGIN ? OTHER_LOGINS : login);

/** The text that represents all addresses that no rule and no access policy contains. */
export const OTHER_ADDRESSES = "<any other address>";

/** The values of `ANY_ADDRESS` and `ANY_IPV6_ADDRESS`. */
const OTHER_ADDRESS: typeof ANY_ADDRESS = "192.0.2.1";
const OTHER_IPV6_ADDRESS: typeof ANY_IPV6_ADDRESS = "2001:db8::1";

/**
 * Returns the display text of an evaluated address.
 * @param other the address that represents all other addresses; an empty text if there is none
 */
export function addressWord(address: string, other: string = OTHER_ADDRESS): string {
  if (address === OTHER_IPV6_ADDRESS && other !== "") return "<any other IPv6 address>";
  return address === other ? OTHER_ADDRESSES : address;
}

/** The maximum number of names or addresses that {@link listText} shows. */
const LIST_MAX = 4;
/** The number of characters of a fingerprint that are shown to distinguish keys. */
const FINGERPRINT_WIDTH = 11;

/** Returns the first few texts and the number of further texts, for a table: `a, b, c, d, 3 more`. */
export function listText(texts: readonly string[]): string {
  const more = texts.length - LIST_MAX;
  return [...texts.slice(0, LIST_MAX), ...(more > 0 ? [`${more} more`] : [])].join(", ");
}

/** Returns the first texts and the number of further texts, for a sentence: `a, b and 3 more`. */
export function firstOf(texts: readonly string[], most: number): string {
  const more = texts.length - most;
  return `${texts.slice(0, most).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/** Returns a text with an upper-case first letter. */
export const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** Returns a count with its noun: `1 key`, `2 keys`. */
export const counted = (count: number, what: string, several = `${what}s`): string =>
  `${count} ${count === 1 ? what : several}`;

/**
 * Returns a time as reports show it: `2026-11-23 07:28 UTC`.
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
 * Returns a time with its seconds, which are omitted if they are zero: `2026-12-01 18:00 UTC`.
 * @param at RFC 3339 in UTC
 */
export function instantText(at: string): string {
  const seconds = at.slice(16, 19);
  return `${at.slice(0, 16).replace("T", " ")}${seconds === ":00" ? "" : seconds} UTC`;
}

/** Returns the expiry time of access as reports show it: `until 2026-12-01 18:00 UTC`. @param end RFC 3339 in UTC */
export const untilText = (end: string): string => `until ${instantText(end)}`;

/**
 * Returns a key's name with the first characters of its fingerprint, since several keys may share a name. Returns the
 * e-mail address of a user, and the name of a service account with the first characters of its id.
 */
export function subjectText(subject: AccessSubject): string {
  if (!("kind" in subject)) return named(subject.name, subject.fingerprint);
  return subject.kind === "user" ? subject.name : `service account ${named(subject.name, subject.id)}`;
}

const named = (name: string, id: string): string =>
  `${name} (${id.slice(0, FINGERPRINT_WIDTH)}…)`.trimStart();

/** The condition under which a login is allowed, as the end of a sentence; empty if there is no condition. */
export const CONDITIONS: Readonly<Record<Outcome, string>> = {
  allow: "",
  deny: "",
  unknown: " if the user has an SSH key",
  reauthentication: " after a re-authentication",
  approval: " after the approval of an SSH key",
};

/** Returns the text of a rule: `12 (allow, priority 7)`. */
export const ruleText = ({ id, action, priority }: Pick<AccessRule, "id" | "action" | "priority">): string =>
  `${id} (${action}, priority ${priority})`;

/** Maximum width of a column, in characters. The table shows longer cells in full. */
const COLUMN_MAX = 60;

/** Generates the lines of a table, each with its line break. The first row has all columns. */
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

/**
 * The first comparison creates the collator. The creation takes 20 ms, so commands that sort nothing do not create a
 * collator.
 */
let collator: Intl.Collator | undefined;

/**
 * Compares texts in natural order. Numbers in the texts are compared by value. The order is the same on every machine.
 */
export function byText(left: string, right: string): number {
  collator ??= new Intl.Collator("en", { numeric: true });
  // The collator treats some different texts as equal. A plain comparison then determines the order.
  return collator.compare(left, right) || (left < right ? -1 : left > right ? 1 : 0);
}

/** Returns a function that compares items by several texts. The first text that differs determines the order. */
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
 * The characters without a visible shape. These are control and format characters, line separators, zero-width
 * characters, lone surrogates and noncharacters. Some of them can move the cursor or change the writing direction.
 */
const UNSEEN =
  /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}]/gu;

/**
 * Replaces each invisible character in a text with an escape. Such characters can mislead a reader or control an
 * editor.
 */
export const escaping = (text: string, escaped: (character: string) => string): string =>
  text.replaceAll(UNSEEN, escaped);

/** Returns the code point of a character in hexadecimal. */
export const codeOf = (character: string): string => (character.codePointAt(0) ?? 0).toString(16);

/**
 * Returns a text from an untrusted source, such as a key's name, in a form that cannot control a terminal. Invisible
 * characters become `\u{1b}`.
 */
export const printable = (text: string): string => escaping(text, (character) => `\\u{${codeOf(character)}}`);

/** True for a URL with letters that are not ASCII. Such a URL can look like another URL. */
const isLookAlike = (value: unknown): value is string =>
  typeof value === "string" && /^\s*https:/i.test(value) && /[^\x20-\x7e]/.test(value);

/**
 * Returns a value as JSON, for output; `nothing` for undefined. A URL with letters that are not ASCII has its host in
 * punycode.
 */
export function valueJson(value: unknown): string {
  if (isLookAlike(value)) return printableIssuer(value);
  const shown = (_key: string, item: unknown) => (isLookAlike(item) ? printableIssuer(item) : item);
  return JSON.stringify(value, shown) ?? "nothing";
}

/** Applies {@link printable} to each line of a text. */
export const printableLines = (text: string): string => text.split("\n").map(printable).join("\n");
