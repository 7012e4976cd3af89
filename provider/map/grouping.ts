import { byText } from "../words.ts";
import type { MapDevice, MapGroup, MapKey } from "./data.ts";

/** Most devices of the same tags that stay one group; more devices are parted by their names. */
const GROUP_MAX = 60;

/** A list, sorted so that the members of each group stand side by side. */
export interface Grouped<T> {
  readonly items: readonly T[];
  readonly groups: readonly MapGroup[];
}

/** Groups keys by who holds them. A key whose holder is not known is a group of its own. */
export function groupKeys(keys: readonly MapKey[]): Grouped<MapKey> {
  const named = [...Map.groupBy(keys, ({ owner, fingerprint }) => owner ?? `\0${fingerprint}`).values()];
  const lists = named.map((list) => ({
    name: list[0]?.owner ?? list[0]?.name ?? "",
    items: list.toSorted((left, right) => byText(left.name, right.name)),
  }));
  return joined(lists.toSorted((left, right) => byText(left.name, right.name)));
}

/** Groups devices by their tags, and where many devices have the same tags, also by what their names have in common. */
export function groupDevices(devices: readonly MapDevice[]): Grouped<MapDevice> {
  const sorted = devices.toSorted((left, right) => byText(left.name, right.name));
  const byTags = Map.groupBy(sorted, ({ tags }) => tags.toSorted(byText).join(" + "));
  const lists = [...byTags]
    .sort(([left], [right]) => Number(left === "") - Number(right === "") || byText(left, right))
    .flatMap(([tags, items]) => partedByName(tags === "" ? "no tags" : tags, items));
  return joined(lists);
}

interface NamedList<T> {
  readonly name: string;
  readonly items: readonly T[];
}

function partedByName(name: string, items: readonly MapDevice[]): NamedList<MapDevice>[] {
  if (items.length <= GROUP_MAX) return [{ name, items }];
  const parts = [...Map.groupBy(items, (device) => commonPart(device.name))];
  const shared = parts.filter(([, part]) => part.length > 1);
  const single = parts.filter(([, part]) => part.length === 1).flatMap(([, part]) => part);
  const lists = shared.map(([part, items]) => ({ name: `${name} · ${part}*`, items }));
  return single.length > 0 ? [...lists, { name: `${name} · other names`, items: single }] : lists;
}

/** A name without the number at its end: `edge-berlin-` of `edge-berlin-07`. */
function commonPart(name: string): string {
  let end = name.length;
  while (end > 0 && isDigit(name.charCodeAt(end - 1))) end -= 1;
  return name.slice(0, end);
}

const isDigit = (code: number) => code >= 0x30 && code <= 0x39;

function joined<T>(lists: readonly NamedList<T>[]): Grouped<T> {
  const groups: MapGroup[] = [];
  let from = 0;
  for (const { name, items } of lists) {
    groups.push({ name, from, count: items.length });
    from += items.length;
  }
  return { items: lists.flatMap(({ items }) => items), groups };
}
