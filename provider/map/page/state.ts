/** The line that was chosen. */
interface Selected {
  readonly side: Side;
  readonly id: string;
  readonly members: ReadonlySet<number>;
}

/** Everything that the page shows at the moment. */
interface Shown {
  readonly view: View;
  readonly rows: Readonly<Record<Side, readonly Row[]>>;
  /** Bits between the lines, see `bitsBetween`. */
  readonly between: Uint8Array;
  readonly selected: Selected | undefined;
}

const otherSide = (side: Side): Side => (side === "keys" ? "devices" : "keys");

/** Bits between a line and one of the other side. */
function bitsAt({ between, rows }: Shown, side: Side, place: number, other: number): number {
  const [key, device] = side === "keys" ? [place, other] : [other, place];
  return between[key * rows.devices.length + device] ?? 0;
}

/** Places of the lines that the selection is made of: an open group's are those of its members. */
function selectedPlaces({ rows, selected }: Shown): ReadonlySet<number> {
  if (!selected) return new Set();
  const { side, id, members } = selected;
  const inside = (row: Row) => row.id === id || row.members.every((member) => members.has(member));
  return new Set(rows[side].flatMap((row, place) => (inside(row) ? [place] : [])));
}

/** Places of the other side's lines that the selection has something with, with the bits of it. */
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
