/** A cell: its text, and the change that it tells of. */
interface Cell {
  readonly text: string;
  readonly change?: Change;
}

const cell = (text: string): Cell => ({ text });
const changeCell = (change: Change): Cell => ({ text: `${SIGN[change]} ${change}`, change });

function made<K extends keyof HTMLElementTagNameMap>(
  name: K,
  options: { readonly text?: string; readonly className?: string } = {},
): HTMLElementTagNameMap[K] {
  const element = document.createElement(name);
  if (options.className) element.className = options.className;
  if (options.text !== undefined) element.textContent = options.text;
  return element;
}

/** A line of a table; what stands below belongs to it, and has the width of the table. */
interface Line {
  readonly cells: readonly Cell[];
  readonly below?: string;
}

/** A table in a box that scrolls, for the keyboard too. */
function tableOf(caption: string, heads: readonly string[], lines: readonly Line[]): HTMLElement {
  const box = made("div", { className: "scroll" });
  box.tabIndex = 0;
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", caption);
  const table = made("table");
  table.append(made("caption", { text: caption }));
  const head = table.createTHead().insertRow();
  for (const text of heads) {
    const column = made("th", { text });
    column.scope = "col";
    head.append(column);
  }
  for (const line of lines) table.append(partOf(line, heads.length));
  box.append(table);
  return box;
}

function partOf({ cells, below }: Line, width: number): HTMLElement {
  const part = made("tbody");
  const line = part.insertRow();
  for (const { text, change } of cells) {
    line.insertCell().append(made("bdi", { text, ...(change && { className: `change ${change}` }) }));
  }
  if (below === undefined) return part;
  const wide = part.insertRow().insertCell();
  wide.colSpan = width;
  wide.className = "below";
  wide.append(made("bdi", { text: below }));
  return part;
}

/** Most names that stand in a cell. */
const NAMES_MAX = 4;

/** Devices by name where they are few, and else by group. */
function devicesInWords(devices: readonly number[]): string {
  if (devices.length <= NAMES_MAX) return devices.map(deviceName).join(", ");
  const set = new Set(devices);
  const parts = data.groups.flatMap(({ name, from, count }) => {
    let found = 0;
    for (let index = from; index < from + count; index += 1) if (set.has(index)) found += 1;
    return found === 0
      ? []
      : [`${found === count ? `all ${count}` : `${found} of ${count}`} of ${shown(name)}`];
  });
  const more = parts.length > NAMES_MAX ? [`and ${plural(parts.length - NAMES_MAX, "more group")}`] : [];
  const listed = [...parts.slice(0, NAMES_MAX), ...more].join(", ");
  return parts.length === 1 ? listed : `${plural(devices.length, "device")}: ${listed}`;
}

/** By which rule, and why now. */
function reasonOf({ change, rule, cause }: MapEdge): string {
  const by = shown(data.texts[rule] ?? "");
  if (cause === undefined) return by;
  return `${shown(data.texts[cause] ?? "")}; ${change === "gained" ? "now" : "before"} ${by}`;
}

const listed = (texts: readonly string[]) => texts.map(shown).join(", ");

/** Addresses of an edge; many differ in nothing from any. */
function addressesOf({ addresses }: MapEdge): string {
  return addresses.length === data.addresses.length ? "any address" : listed(addresses);
}

/** Changes first, then by key. */
const inOrder = (edges: readonly VisibleEdge[]): VisibleEdge[] =>
  edges.toSorted(
    ({ edge: left }, { edge: right }) =>
      CHANGES.indexOf(left.change) - CHANGES.indexOf(right.change) || left.key - right.key,
  );
