import { type Access, type EvaluatedLogins, subjectFacts } from "@gatehouse-access/sdk/policy";
import { canonicalTime, hasPassed } from "@gatehouse-access/sdk/times";
import { byText, byTexts, instantText } from "../words.ts";
import type { AccessMapData, MapDevice, MapGroup, MapKey, MapSubtitle } from "./data.ts";
import { addressInWords, CONDITION_WORDS, edgesOf, loginInWords } from "./edges.ts";

export interface AccessMapMeta extends Omit<MapSubtitle, "evaluated"> {
  readonly title: string;
  readonly notes?: readonly string[];
  /**
   * Returns a description of the last change to an object, by the fingerprint or id of the object. Returns undefined if
   * the last change is not known. The function is present only for a map of drift.
   */
  readonly lastChangeOf?: (id: string) => string | undefined;
}

/**
 * Returns the map data for the access before and after a change.
 * @param before must have the same evaluated login names and addresses, and the same list of uids, as `after`. For a
 *   map without changes, pass the same access as `before` and `after`.
 * @throws RangeError if the evaluated login names, the evaluated addresses or the lists of uids differ
 */
export function accessMapData(before: Access, after: Access, meta: AccessMapMeta): AccessMapData {
  checkComparable(before, after);
  const { title, notes = [], lastChangeOf, ...subtitle } = meta;
  const owners = ownersOf([before, after]);
  const bothSubjects = both(before.subjects.map(subjectFacts), after.subjects.map(subjectFacts), "id");
  const keys = groupKeys(
    bothSubjects.map(({ id, name, kind, state }): MapKey => {
      const owner = owners.get(id);
      const changedBy = lastChangeOf?.(id);
      return {
        fingerprint: id,
        name,
        ...(kind !== "key" && { kind }),
        ...(owner !== undefined && { owner }),
        ...(changedBy !== undefined && { changedBy }),
        ...(state && { state }),
      };
    }),
  );
  const allTimes = timesOf(before, after);
  const times = allTimes.slice(0, TIMES_MAX);
  const shownTimes = times.map(instantText);
  const bothDevices = both(before.policy.devices, after.policy.devices, "uid");
  const devices = groupDevices(
    bothDevices.map(({ uid, name, tags, state }) => ({ uid, name, tags, ...(state && { state }) })),
  );
  return {
    title,
    subtitle: { ...subtitle, evaluated: evaluatedInWords(after.evaluated) },
    isDrift: lastChangeOf !== undefined,
    // If the access mode changes, the map shows both keys and users, and labels them as users.
    subject: [before, after].some(({ decider }) => decider.mode === "identity") ? "user" : "key",
    conditions: CONDITION_WORDS,
    keys: keys.items,
    devices: devices.items,
    people: keys.groups,
    groups: devices.groups,
    ...edgesOf(before, after, times, keys.items, devices.items),
    times: shownTimes,
    logins: after.evaluated.logins.map(loginInWords),
    addresses: after.evaluated.addresses.map((address) => addressInWords(address, after.evaluated)),
    notes:
      allTimes.length > TIMES_MAX
        ? [...notes, `Expiry times after ${shownTimes.at(-1)} are not evaluated.`]
        : notes,
  };
}

/** Returns the e-mail addresses of the members who own keys, by fingerprint. */
function ownersOf(accesses: readonly Access[]): ReadonlyMap<string, string> {
  const members = new Map(
    accesses.flatMap(({ policy }) => policy.members ?? []).map(({ id, email }) => [id, email]),
  );
  return new Map(
    accesses
      .flatMap(({ policy }) => policy.keys)
      .flatMap(({ fingerprint, owner = "" }): [string, string][] => {
        const email = members.get(owner);
        return email === undefined ? [] : [[fingerprint, email]];
      }),
  );
}

/** Maximum number of points in time for which a map shows the access. */
const TIMES_MAX = 20;

/**
 * Returns the points in time that a map shows, in RFC 3339: the time for which the access was evaluated, and the later
 * times at which an expiry can change it.
 */
function timesOf(before: Access, after: Access): string[] {
  const ends = [before, after].flatMap(({ decider }) => decider.ends);
  const later = ends.filter((end) => !hasPassed(end, after.time)).map((end) => canonicalTime(end));
  return [...new Set([after.time.toISOString(), ...later])].sort();
}

function checkComparable(before: Access, after: Access): void {
  if (JSON.stringify(before.uids) !== JSON.stringify(after.uids))
    throw new RangeError("before and after must have the same list of uids");
  if (JSON.stringify(before.evaluated) !== JSON.stringify(after.evaluated))
    throw new RangeError("before and after must have the same evaluated logins and addresses");
}

function both<T, Id extends keyof T>(before: readonly T[], after: readonly T[], id: Id) {
  const old = new Set(before.map((one) => one[id]));
  const now = new Set(after.map((one) => one[id]));
  return [
    ...after.map((one) => ({ ...one, ...(old.has(one[id]) ? {} : { state: "new" as const }) })),
    ...before.filter((one) => !now.has(one[id])).map((one) => ({ ...one, state: "removed" as const })),
  ];
}

/** Maximum number of devices in a group of devices with the same tags. Larger groups are split by device name. */
const GROUP_MAX = 60;

interface Grouped<T> {
  readonly items: readonly T[];
  readonly groups: readonly MapGroup[];
}

const byName = byTexts(({ name }: { readonly name: string }) => name);

/** Groups keys by owner. Each key without a known owner is in its own group. */
function groupKeys(keys: readonly MapKey[]): Grouped<MapKey> {
  const named = [...Map.groupBy(keys, ({ owner, fingerprint }) => owner ?? `\0${fingerprint}`).values()];
  const lists = named.map((list) => ({
    name: list[0]?.owner ?? list[0]?.name ?? "",
    items: list.toSorted(byName),
  }));
  return joined(lists.toSorted(byName));
}

/** Groups devices by tags. A large group of devices with the same tags is split by common parts of their names. */
function groupDevices(devices: readonly MapDevice[]): Grouped<MapDevice> {
  const sorted = devices.toSorted(byName);
  const byTags = Map.groupBy(sorted, ({ tags }) => tags.toSorted(byText).join(" + "));
  const lists = [...byTags]
    .sort(([left], [right]) => Number(left === "") - Number(right === "") || byText(left, right))
    .flatMap(([tags, items]) => splitByName(tags === "" ? "no tags" : tags, items));
  return joined(lists);
}

interface NamedList<T> {
  readonly name: string;
  readonly items: readonly T[];
}

function splitByName(name: string, items: readonly MapDevice[]): NamedList<MapDevice>[] {
  if (items.length <= GROUP_MAX) return [{ name, items }];
  const parts = [...Map.groupBy(items, (device) => commonPart(device.name))];
  const shared = parts.filter(([, part]) => part.length > 1);
  const single = parts.filter(([, part]) => part.length === 1).flatMap(([, part]) => part);
  const lists = shared.map(([part, items]) => ({ name: `${name} · ${part}*`, items }));
  return single.length > 0 ? [...lists, { name: `${name} · other names`, items: single }] : lists;
}

/** Returns a name without its trailing number: `edge-berlin-` for `edge-berlin-07`. */
const commonPart = (name: string): string => name.replace(/(?<![0-9])[0-9]+$/, "");

function joined<T>(lists: readonly NamedList<T>[]): Grouped<T> {
  const groups: MapGroup[] = [];
  let from = 0;
  for (const { name, items } of lists) {
    groups.push({ name, from, count: items.length });
    from += items.length;
  }
  return { items: lists.flatMap(({ items }) => items), groups };
}

function evaluatedInWords(evaluated: EvaluatedLogins): string {
  const { logins, addresses } = evaluated;
  const from = addresses.map((address) => addressInWords(address, evaluated));
  return `Evaluated: ${counted(logins.map(loginInWords), "login")}, from ${counted(from, "address", "addresses")}.`;
}

const LISTED_MAX = 8;

function counted(texts: readonly string[], one: string, many = `${one}s`): string {
  const more = texts.length > LISTED_MAX ? [`and ${texts.length - LISTED_MAX} more`] : [];
  const listed = [...texts.slice(0, LISTED_MAX), ...more].join(", ");
  return `${texts.length} ${texts.length === 1 ? one : many}${listed === "" ? "" : ` (${listed})`}`;
}
