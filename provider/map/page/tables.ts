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

/** Most lines of a table in the panel. */
const DETAILS_MAX = 200;

const panel = byId("details-body");

/** Shows what was chosen; with nothing chosen, what changes. */
function drawDetails(state: Shown): void {
  const { selected } = state;
  byId("details-close").hidden = selected === undefined;
  const row = selected && state.rows[selected.side].find(({ id }) => id === selected.id);
  if (row) drawRow(state, row);
  else drawOverview(state);
  panel.scrollTop = 0;
}

function drawOverview({ view }: Shown): void {
  title("What changes");
  const changed = inOrder(view.edges.filter(({ edge }) => edge.change !== "kept"));
  if (changed.length === 0) {
    panel.replaceChildren(made("p", { text: "Nobody gains or loses anything of what is shown." }));
    return;
  }
  const rows = changed.map(({ edge, devices }) => ({
    cells: [
      changeCell(edge.change),
      cell(keyTitle(edge.key)),
      cell(listed(edge.logins)),
      cell(devicesInWords(devices)),
    ],
  }));
  const hint = made("p", { className: "hint", text: "Choose a key or a device to see all about it." });
  panel.replaceChildren(hint, ...limited("Gained and lost", ["Change", "Key", "Login", "Devices"], rows));
}

function drawRow({ view }: Shown, row: Row): void {
  title(row.name);
  const members = new Set(row.members);
  const [facts, table] =
    row.side === "keys"
      ? [factsOfKeys(row), tableOfKeys(view, members)]
      : [factsOfDevices(row), tableOfDevices(view, members)];
  panel.replaceChildren(factList(facts), ...table);
}

function title(text: string): void {
  byId("details-title").textContent = text;
}

type Fact = readonly [name: string, value: string];

function factsOfKeys({ members, counts }: Row): Fact[] {
  const [index = 0] = members;
  const key = data.keys[index];
  const own: Fact[] =
    members.length > 1
      ? [["Keys", members.map(keyName).join(", ")]]
      : [
          ["Key", keyName(index)],
          ["Fingerprint", shown(key?.fingerprint ?? "")],
          ["Person", key?.owner === undefined ? "not known" : shown(key.owner)],
        ];
  return [...own, ["Reach", countsInWords(counts, "device")]];
}

function factsOfDevices({ members, counts }: Row): Fact[] {
  const [index = 0] = members;
  const device = data.devices[index];
  const own: Fact[] =
    members.length > 1
      ? [["Devices", devicesInWords(members)]]
      : [
          ["Uid", shown(device?.uid ?? "")],
          ["Tags", listed(device?.tags ?? []) || "none"],
        ];
  return [...own, ["Reached by", countsInWords(counts, "key")]];
}

const countsInWords = (counts: Counts, one: string): string =>
  CHANGES.filter((change) => counts[change] > 0)
    .map((change) => `${SIGN[change]} ${plural(counts[change], one)} ${change}`)
    .join(", ") || "nothing";

function factList(facts: readonly Fact[]): HTMLElement {
  const list = made("dl", { className: "facts" });
  for (const [name, value] of facts) {
    const description = made("dd");
    description.append(made("bdi", { text: value }));
    list.append(made("dt", { text: name }), description);
  }
  return list;
}

function tableOfKeys({ edges }: View, members: ReadonlySet<number>): HTMLElement[] {
  const own = inOrder(edges.filter(({ edge }) => members.has(edge.key)));
  const several = members.size > 1;
  const lines = own.map(({ edge, devices }) => ({
    cells: [
      changeCell(edge.change),
      ...(several ? [cell(keyName(edge.key))] : []),
      cell(listed(edge.logins)),
      cell(devicesInWords(devices)),
      cell(addressesOf(edge)),
    ],
    below: reasonOf(edge),
  }));
  const heads = ["Change", ...(several ? ["Key"] : []), "Login", "Devices", "From"];
  return limited("What it reaches, and why", heads, lines);
}

function tableOfDevices({ edges }: View, members: ReadonlySet<number>): HTMLElement[] {
  const own = edges
    .map(({ edge, devices }) => ({ edge, devices: devices.filter((device) => members.has(device)) }))
    .filter(({ devices }) => devices.length > 0);
  const several = members.size > 1;
  const lines = inOrder(own).map(({ edge, devices }) => ({
    cells: [
      changeCell(edge.change),
      cell(keyTitle(edge.key)),
      cell(listed(edge.logins)),
      ...(several ? [cell(devicesInWords(devices))] : []),
      cell(addressesOf(edge)),
    ],
    below: reasonOf(edge),
  }));
  const heads = ["Change", "Key", "Login", ...(several ? ["Devices"] : []), "From"];
  return limited("Who reaches it, and why", heads, lines);
}

function limited(caption: string, heads: readonly string[], rows: readonly Line[]): HTMLElement[] {
  if (rows.length === 0) return [made("p", { text: "No access, of what is shown." })];
  const table = tableOf(caption, heads, rows.slice(0, DETAILS_MAX));
  if (rows.length <= DETAILS_MAX) return [table];
  const text = `${plural(rows.length - DETAILS_MAX, "more line")} are folded away: filter to see them.`;
  return [table, made("p", { className: "hint", text })];
}

/** Lines that the table has at first, and that each press of the button adds. */
const PAGE = 100;

let listedLines = PAGE;
const HEADS = ["Change", "Person", "Key", "Login", "Devices", "From", "Rule and reason"];

/** The whole view as a table: the same as the picture, for those who do not see it, and for paper. */
function drawList({ view }: Shown, lines = PAGE): void {
  listedLines = lines;
  const edges = inOrder(view.edges);
  const rows = edges.slice(0, lines).map(({ edge, devices }) => {
    const key = data.keys[edge.key];
    const cells = [
      changeCell(edge.change),
      cell(key?.owner === undefined ? "not known" : shown(key.owner)),
      cell(keyName(edge.key)),
      cell(listed(edge.logins)),
      cell(devicesInWords(devices)),
      cell(addressesOf(edge)),
      cell(reasonOf(edge)),
    ];
    return { cells };
  });
  const caption = `${Math.min(lines, edges.length).toLocaleString("en")} of ${plural(edges.length, "line")}`;
  byId("list-body").replaceChildren(
    edges.length > 0 ? tableOf(caption, HEADS, rows) : made("p", { text: "Nothing to show." }),
  );
  byId("list-more").hidden = edges.length <= lines;
}
