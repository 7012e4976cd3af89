import { type AccessDevice, ANY_ADDRESS } from "@gatehouse-access/sdk/policy";
import { domainLines, unknownLines } from "./accessDomainText.ts";
import { accessRows } from "./accessRows.ts";
import { keyText, listText, printable, ruleText } from "./accessText.ts";
import type { AccessView } from "./accessView.ts";
import { DeviceGroups } from "./deviceGroups.ts";

const HEAD = ["KEY", "LOGIN", "FROM", "DEVICES", "BY RULE"] as const;
/** Widest a column becomes for one long cell; the cell itself is shown whole. */
const COLUMN_MAX = 60;
/** Most addresses of which it is said that all others are meant. */
const EXCEPTIONS_MAX = 3;

/** Who can reach what, as a table for people, in parts that end with lines. */
export function* accessTable(view: AccessView): Generator<string> {
  yield `${domainLines(view).join("\n")}\n\n`;
  const rows = cellsOf(view);
  if (rows.length === 0) yield "No key reaches any of these devices.\n";
  else yield* tableLines([HEAD, ...rows]);
  const unknown = unknownLines(view);
  if (unknown.length > 0) yield `\n${unknown.join("\n")}\n`;
}

function cellsOf(view: AccessView): string[][] {
  const summary = summaries(view);
  return Array.from(accessRows(view), (row) =>
    [
      keyText(row.key),
      listText(row.logins),
      addressText(row.addresses, view),
      summary(row.devices),
      row.rule === null ? "none matches" : ruleText(row.rule),
    ].map(printable),
  );
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

/** Of addresses that were asked about each is named. */
function addressText(addresses: readonly string[], { query, domain }: AccessView): string {
  if (query.addresses.length > 0) return listText(addresses);
  if (addresses.length === domain.addresses.length) return "any";
  const others = domain.addresses.filter((address) => !addresses.includes(address));
  return addresses.includes(ANY_ADDRESS) && others.length <= EXCEPTIONS_MAX
    ? `any but ${others.join(", ")}`
    : listText(addresses);
}

/** Many keys have the same devices: those of each length and end are remembered. */
function summaries({ estate, devices }: AccessView): (uids: readonly string[]) => string {
  const groups = new DeviceGroups(estate.policy.devices);
  const byUid = new Map(devices.map((device) => [device.uid, device]));
  const known = new Map<string, { readonly uids: readonly string[]; readonly text: string }>();
  return (uids) => {
    const name = `${uids.length} ${uids[0]} ${uids.at(-1)}`;
    const same = known.get(name);
    if (same?.uids.every((uid, index) => uid === uids[index])) return same.text;
    const { text } = groups.of(uids.flatMap((uid): AccessDevice | [] => byUid.get(uid) ?? []));
    known.set(name, { uids, text });
    return text;
  };
}
