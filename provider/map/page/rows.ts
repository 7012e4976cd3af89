const MEMBERS_MAX = 200;
const GROUPS_MAX = 400;

type Counts = Readonly<Record<Change, number>>;

/** One line of a list: a key, a device, a group of keys or devices, or the remaining items of a truncated list. */
interface Row {
  readonly id: string;
  readonly side: Side;
  readonly kind: "item" | "group" | "rest";
  readonly level: 1 | 2;
  readonly open: boolean;
  readonly name: string;
  readonly detail: string;
  readonly state: "new" | "removed" | undefined;
  /** Indexes of the keys or devices that the line represents. */
  readonly members: readonly number[];
  readonly counts: Counts;
}

/** Returns the change bits of each key or device of a list. The bits combine all of its changes. */
function bitsOfAll(view: View, side: Side): Uint8Array {
  const bits = new Uint8Array(data[side].length);
  eachPair(view, (key, device, bit) => {
    const index = side === "keys" ? key : device;
    bits[index] = (bits[index] ?? 0) | bit;
  });
  return bits;
}

/** Calls `visit` for each key and device with access between them. */
function eachPair({ pairs }: View, visit: (key: number, device: number, bits: number) => void): void {
  const width = data.devices.length;
  for (const [place, bits] of pairs.entries())
    if (bits !== 0) visit(Math.floor(place / width), place % width, bits);
}

/**
 * Counts the items of the other list that have access with the given members, for each kind of change. An item counts
 * for a kind of change if its access with at least one member has this change.
 * @param members the keys or devices of one line
 */
function countsOf(view: View, side: Side, members: readonly number[]): Counts {
  const width = data.devices.length;
  const others = data[side === "keys" ? "devices" : "keys"].length;
  const counts = { gained: 0, lost: 0, kept: 0 };
  for (let other = 0; other < others; other += 1) {
    let bits = 0;
    for (const member of members)
      bits |= view.pairs[side === "keys" ? member * width + other : other * width + member] ?? 0;
    for (const change of CHANGES) if (bits & BIT[change]) counts[change] += 1;
  }
  return counts;
}

interface LiveGroup {
  readonly id: string;
  readonly name: string;
  readonly members: readonly number[];
  readonly changed: boolean;
}

/**
 * Returns the lines of a list. Changed lines come first. If filters are set, returns only lines with matching access.
 */
function rowsOf(view: View, side: Side, open: ReadonlySet<string>): Row[] {
  const bits = bitsOfAll(view, side);
  const isChanged = (index: number) => ((bits[index] ?? 0) & (BIT.gained | BIT.lost)) !== 0;
  const changedFirst = (left: number, right: number) => Number(isChanged(right)) - Number(isChanged(left));
  const groups = data[side === "keys" ? "people" : "groups"].flatMap(({ name, from, count }): LiveGroup[] => {
    const all = Array.from({ length: count }, (_, offset) => from + offset);
    const members = all.filter((index) => !view.filtered || bits[index]).sort(changedFirst);
    const id = `${side}-g${from}`;
    return members.length > 0 ? [{ id, name, members, changed: members.some(isChanged) }] : [];
  });
  const sorted = groups.sort((left, right) => Number(right.changed) - Number(left.changed));
  const rows = sorted
    .slice(0, GROUPS_MAX)
    .flatMap((group) => groupRows(view, side, group, open.has(group.id)));
  const rest = sorted.slice(GROUPS_MAX).flatMap(({ members }) => members);
  return rest.length > 0 ? [...rows, restRow(view, side, `${side}-rest`, rest, 1)] : rows;
}

function groupRows(view: View, side: Side, group: LiveGroup, open: boolean): Row[] {
  const { id, name, members } = group;
  const [first] = members;
  if (members.length === 1 && first !== undefined) return [itemRow(view, side, first, 1)];
  const detail = plural(members.length, side === "keys" ? data.subject : "device");
  const head: Row = {
    id,
    side,
    kind: "group",
    level: 1,
    open,
    name: shown(name),
    detail,
    state: undefined,
    members,
    counts: countsOf(view, side, members),
  };
  if (!open) return [head];
  const items = members.slice(0, MEMBERS_MAX).map((index) => itemRow(view, side, index, 2));
  const rest = members.slice(MEMBERS_MAX);
  return [head, ...items, ...(rest.length > 0 ? [restRow(view, side, `${id}-rest`, rest, 2)] : [])];
}

function itemRow(view: View, side: Side, index: number, level: 1 | 2): Row {
  const { state } = data[side][index] ?? {};
  const owner = data.keys[index]?.owner;
  const alone = level === 1 && owner !== undefined;
  const name = side === "devices" ? deviceName(index) : alone ? shown(owner) : keyName(index);
  const fingerprint = data.keys[index]?.kind ?? shortFingerprint(data.keys[index]?.fingerprint ?? "");
  const ofKey = alone ? `${keyName(index)} · ${fingerprint}` : fingerprint;
  const tags = data.devices[index]?.tags.map(shown).join(", ");
  return {
    id: `${side}-${index}`,
    side,
    kind: "item",
    level,
    open: false,
    name,
    state,
    members: [index],
    detail: side === "keys" ? ofKey : tags || "no tags",
    counts: countsOf(view, side, [index]),
  };
}

function restRow(view: View, side: Side, id: string, members: readonly number[], level: 1 | 2): Row {
  return {
    id,
    side,
    kind: "rest",
    level,
    open: false,
    state: undefined,
    members,
    name: plural(members.length, side === "keys" ? `more ${data.subject}` : "more device"),
    detail: "hidden; use a filter to find hidden items",
    counts: countsOf(view, side, members),
  };
}

/**
 * Returns the index of the line at which the links of each key or device end: the item's own line, or the line of its
 * group if the group is closed.
 */
function rowPlaces(side: Side, rows: readonly Row[]): Int32Array {
  const places = new Int32Array(data[side].length).fill(-1);
  for (const [place, { kind, open, members }] of rows.entries()) {
    if (kind === "group" && open) continue;
    for (const member of members) places[member] = place;
  }
  return places;
}

/**
 * Returns the change bits between each line of the key list and each line of the device list, in row-major order. Each
 * line of the key list has one row.
 */
function bitsBetween(view: View, keyRows: readonly Row[], deviceRows: readonly Row[]): Uint8Array {
  const [ofKey, ofDevice] = [rowPlaces("keys", keyRows), rowPlaces("devices", deviceRows)];
  const bits = new Uint8Array(keyRows.length * deviceRows.length);
  eachPair(view, (key, device, bit) => {
    const at = (ofKey[key] ?? 0) * deviceRows.length + (ofDevice[device] ?? 0);
    bits[at] = (bits[at] ?? 0) | bit;
  });
  return bits;
}

/**
 * Returns the changes of a line in words for screen readers, such as `gains 2 devices, keeps 3 devices`. The line
 * itself shows a sign for each kind of change.
 */
function changesInWords({ side, counts }: Row): string {
  const [other, verbs] =
    side === "keys"
      ? ["device", { gained: "gains", lost: "loses", kept: "keeps" }]
      : [data.subject, { gained: "gained by", lost: "lost by", kept: "kept by" }];
  const phrases = CHANGES.filter((change) => counts[change] > 0).map(
    (change) => `${verbs[change]} ${plural(counts[change], other)}`,
  );
  return phrases.join(", ") || "no access";
}

interface Selected {
  readonly side: Side;
  readonly id: string;
  readonly members: ReadonlySet<number>;
}

interface Shown {
  readonly view: View;
  readonly rows: Readonly<Record<Side, readonly Row[]>>;
  readonly between: Uint8Array;
  readonly selected: Selected | undefined;
}

const otherSide = (side: Side): Side => (side === "keys" ? "devices" : "keys");

/** Returns the change bits between a line of one list and a line of the other list. */
function bitsAt({ between, rows }: Shown, side: Side, place: number, other: number): number {
  const [key, device] = side === "keys" ? [place, other] : [other, place];
  return between[key * rows.devices.length + device] ?? 0;
}

/** Returns the indexes of the selected lines. The selection of an open group includes the lines of its members. */
function selectedPlaces({ rows, selected }: Shown): ReadonlySet<number> {
  if (!selected) return new Set();
  const { side, id, members } = selected;
  const inside = (row: Row) => row.id === id || row.members.every((member) => members.has(member));
  return new Set(rows[side].flatMap((row, place) => (inside(row) ? [place] : [])));
}

/**
 * Returns the lines of the other list that are connected to the selection: the change bits, by the index of the line.
 */
function connectedPlaces(state: Shown): ReadonlyMap<number, number> {
  const connected = new Map<number, number>();
  const { selected } = state;
  if (!selected) return connected;
  for (const place of selectedPlaces(state)) {
    for (const other of state.rows[otherSide(selected.side)].keys()) {
      const bits = bitsAt(state, selected.side, place, other);
      if (bits !== 0) connected.set(other, (connected.get(other) ?? 0) | bits);
    }
  }
  return connected;
}
