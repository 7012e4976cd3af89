import { type AccessKey, ANY_ADDRESS } from "@gatehouse-access/sdk/policy";
import { keyText, listText, ruleText } from "../words/phrases.ts";
import { printable } from "../words/printable.ts";
import { DeviceGroups } from "./deviceGroups.ts";
import { domainLines, unknownLines } from "./domainText.ts";
import { accessRows } from "./rows.ts";
import type { AccessView } from "./view.ts";

const HEAD = ["KEY", "LOGIN", "FROM", "DEVICES", "BY RULE"] as const;
/** Widest a column becomes for one long cell; the cell itself is shown whole. */
const COLUMN_MAX = 60;
/** Most uids, of all sets of devices together, whose words are remembered. */
const HELD_MAX = 1_000_000;
/** Most addresses that `any but …` names. */
const EXCEPTIONS_MAX = 3;

/** Who can reach what, as a table for people, in parts that end with lines. */
export function* accessTable(view: AccessView): Generator<string> {
  yield `${domainLines(view).join("\n")}\n\n`;
  const { rows, useful } = tableOf(view);
  if (rows.length > 0) yield* tableLines([HEAD, ...rows]);
  const useless = view.keys.filter((key) => !useful.has(key)).map(keyText);
  if (rows.length === 0)
    yield "No key reaches any of these devices, as these login names from these addresses.\n";
  else if (useless.length > 0) yield `\nNone of these devices for ${printable(listText(useless))}\n`;
  const unknown = unknownLines(view);
  if (unknown.length > 0) yield `\n${unknown.join("\n")}\n`;
}

/** The rows in words. They stay in memory for the widths of the columns; the devices of each row do not. */
function tableOf(view: AccessView): { rows: string[][]; useful: ReadonlySet<AccessKey> } {
  const summary = summaries(view);
  const useful = new Set<AccessKey>();
  const rows = Array.from(accessRows(view), ({ key, logins, addresses, devices, rule }) => {
    useful.add(key);
    const by = rule === null ? "none matches" : ruleText(rule);
    return [keyText(key), listText(logins), addressText(addresses, view), summary(devices), by].map(
      printable,
    );
  });
  return { rows, useful };
}

function* tableLines(rows: readonly (readonly string[])[]): Generator<string> {
  const widths = HEAD.map((_, column) =>
    rows.reduce((width, row) => Math.min(COLUMN_MAX, Math.max(width, row[column]?.length ?? 0)), 0),
  );
  for (const row of rows) {
    yield `${row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd()}\n`;
  }
}

/** Addresses that were asked about are never summed up. */
function addressText(addresses: readonly string[], { inquiry, domain }: AccessView): string {
  if (inquiry.addresses.length > 0) return listText(addresses);
  if (addresses.length === domain.addresses.length) return "any";
  const others = domain.addresses.filter((address) => !addresses.includes(address));
  return addresses.includes(ANY_ADDRESS) && others.length <= EXCEPTIONS_MAX
    ? `any but ${others.join(", ")}`
    : listText(addresses);
}

/** Puts sets of devices into words, each set once, since many keys have the same one. */
function summaries({ estate }: AccessView): (uids: readonly string[]) => string {
  const groups = new DeviceGroups(estate.policy.devices);
  let held = 0;
  const known = new Map<string, { readonly uids: readonly string[]; readonly text: string }[]>();
  return (uids) => {
    const name = `${uids.length} ${uids[0]} ${uids.at(-1)}`;
    const alike = known.get(name) ?? [];
    const same = alike.find((other) => uids.every((uid, index) => uid === other.uids[index]));
    if (same) return same.text;
    const text = groups.of(uids);
    held += uids.length;
    if (held > HELD_MAX) {
      known.clear();
      held = uids.length;
    }
    known.set(name, [...(known.get(name) ?? []), { uids, text }]);
    return text;
  };
}
