import { accessRows } from "./rows.ts";
import type { AccessView } from "./view.ts";

const HEAD = [
  "key_fingerprint",
  "key_name",
  "login",
  "addresses",
  "device_uid",
  "device_name",
  "rule_id",
  "rule_action",
  "rule_priority",
];

/**
 * Who can reach what, as CSV (RFC 4180), in parts that end with lines: one for each key, login name, group of addresses
 * and device.
 */
export function* accessCsv(view: AccessView): Generator<string> {
  const names = new Map(view.devices.map(({ uid, name }) => [uid, name]));
  yield line(HEAD);
  for (const { key, logins, addresses, devices, rule } of accessRows(view)) {
    const by = rule === null ? ["", "", ""] : [rule.id, rule.action, String(rule.priority)];
    for (const login of logins) {
      const about = [key.fingerprint, key.name, login, addresses.join(" ")];
      yield devices.map((uid) => line([...about, uid, names.get(uid) ?? "", ...by])).join("");
    }
  }
}

const line = (cells: readonly string[]): string => `${cells.map(cell).join(",")}\r\n`;

/** The beginnings of texts that spreadsheet programs take for formulas, also in full width. */
const FORMULA = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;

/** For spreadsheet programs an apostrophe makes a formula a text, and is not shown. */
function cell(text: string): string {
  const harmless = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}
