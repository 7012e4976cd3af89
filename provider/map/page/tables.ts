interface Cell {
  readonly text: string;
  readonly change?: Change;
}

function made<K extends keyof HTMLElementTagNameMap>(
  name: K,
  { text, className }: { readonly text?: string; readonly className?: string } = {},
  ...children: readonly HTMLElement[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(name);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  element.append(...children);
  return element;
}

/** The columns of a table of edges. A key has its owner beside it in `Key` and not in `Name`, which is headed alike. */
const COLUMNS = {
  Change: ({ edge }) => ({ text: `${SIGN[edge.change]} ${edge.change}`, change: edge.change }),
  Person: ({ edge }) => {
    const owner = data.keys[edge.key]?.owner;
    return { text: owner === undefined ? "not known" : shown(owner) };
  },
  Key: ({ edge }) => ({ text: keyTitle(edge.key) }),
  Name: ({ edge }) => ({ text: keyName(edge.key) }),
  Login: ({ edge }) => ({ text: listed(edge.logins) }),
  Devices: ({ devices }) => ({ text: devicesInWords(devices) }),
  From: ({ edge }) => ({ text: addressesOf(edge) }),
  "Rule and reason": ({ edge }) => ({ text: reasonOf(edge) }),
} as const satisfies Record<string, (edge: VisibleEdge) => Cell>;

type Column = keyof typeof COLUMNS;

/**
 * A table of edges, in a box that scrolls, for the keyboard too.
 * @param reasons whether the reason of each edge stands below its line, over the width of the table
 */
function tableOf(
  caption: string,
  columns: readonly Column[],
  edges: readonly VisibleEdge[],
  reasons: boolean,
): HTMLElement {
  const table = made("table", {}, made("caption", { text: caption }));
  const head = table.createTHead().insertRow();
  for (const column of columns) {
    const cell = made("th", { text: column === "Name" ? "Key" : column });
    cell.scope = "col";
    head.append(cell);
  }
  for (const edge of edges) {
    const part = made("tbody");
    const line = part.insertRow();
    for (const column of columns) {
      const { text, change }: Cell = COLUMNS[column](edge);
      line.insertCell().append(made("bdi", { text, ...(change && { className: `change ${change}` }) }));
    }
    if (reasons) {
      const wide = part.insertRow().insertCell();
      wide.colSpan = columns.length;
      wide.className = "below";
      wide.append(made("bdi", { text: reasonOf(edge.edge) }));
    }
    table.append(part);
  }
  const box = made("div", { className: "scroll" }, table);
  box.tabIndex = 0;
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", caption);
  return box;
}

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

const inOrder = (edges: readonly VisibleEdge[]): VisibleEdge[] =>
  edges.toSorted(
    ({ edge: left }, { edge: right }) =>
      CHANGES.indexOf(left.change) - CHANGES.indexOf(right.change) || left.key - right.key,
  );

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
  byId("details-title").textContent = "What changes";
  const changed = inOrder(view.edges.filter(({ edge }) => edge.change !== "kept"));
  if (changed.length === 0) {
    panel.replaceChildren(made("p", { text: "Nobody gains or loses anything of what is shown." }));
    return;
  }
  const hint = made("p", { className: "hint", text: "Choose a key or a device to see all about it." });
  panel.replaceChildren(
    hint,
    ...limited("Gained and lost", ["Change", "Key", "Login", "Devices"], changed, false),
  );
}

function drawRow({ view }: Shown, row: Row): void {
  byId("details-title").textContent = row.name;
  const members = new Set(row.members);
  const [facts, table] =
    row.side === "keys"
      ? [factsOfKeys(row), tableOfKeys(view, members)]
      : [factsOfDevices(row), tableOfDevices(view, members)];
  panel.replaceChildren(made("dl", { className: "facts" }, ...facts.flatMap(factOf)), ...table);
}

type Fact = readonly [name: string, value: string];

function factsOfKeys({ members, counts }: Row): Fact[] {
  const reach: Fact = ["Reach", countsInWords(counts, "device")];
  if (members.length > 1) return [["Keys", members.map(keyName).join(", ")], reach];
  const [index = 0] = members;
  const { fingerprint = "", owner } = data.keys[index] ?? {};
  const person = owner === undefined ? "not known" : shown(owner);
  return [["Key", keyName(index)], ["Fingerprint", shown(fingerprint)], ["Person", person], reach];
}

function factsOfDevices({ members, counts }: Row): Fact[] {
  const reached: Fact = ["Reached by", countsInWords(counts, "key")];
  if (members.length > 1) return [["Devices", devicesInWords(members)], reached];
  const [index = 0] = members;
  const { uid = "", tags = [] } = data.devices[index] ?? {};
  return [["Uid", shown(uid)], ["Tags", listed(tags) || "none"], reached];
}

const countsInWords = (counts: Counts, one: string): string =>
  CHANGES.filter((change) => counts[change] > 0)
    .map((change) => `${SIGN[change]} ${plural(counts[change], one)} ${change}`)
    .join(", ") || "nothing";

const factOf = ([name, value]: Fact): HTMLElement[] => [
  made("dt", { text: name }),
  made("dd", {}, made("bdi", { text: value })),
];

function tableOfKeys({ edges }: View, members: ReadonlySet<number>): HTMLElement[] {
  const own = inOrder(edges.filter(({ edge }) => members.has(edge.key)));
  const key: readonly Column[] = members.size > 1 ? ["Name"] : [];
  return limited("What it reaches, and why", ["Change", ...key, "Login", "Devices", "From"], own, true);
}

function tableOfDevices({ edges }: View, members: ReadonlySet<number>): HTMLElement[] {
  const own = edges
    .map(({ edge, devices }) => ({ edge, devices: devices.filter((device) => members.has(device)) }))
    .filter(({ devices }) => devices.length > 0);
  const some: readonly Column[] = members.size > 1 ? ["Devices"] : [];
  return limited("Who reaches it, and why", ["Change", "Key", "Login", ...some, "From"], inOrder(own), true);
}

function limited(
  caption: string,
  columns: readonly Column[],
  edges: readonly VisibleEdge[],
  reasons: boolean,
): HTMLElement[] {
  if (edges.length === 0) return [made("p", { text: "No access, of what is shown." })];
  const table = tableOf(caption, columns, edges.slice(0, DETAILS_MAX), reasons);
  if (edges.length <= DETAILS_MAX) return [table];
  const text = `${plural(edges.length - DETAILS_MAX, "more line")} are folded away: filter to see them.`;
  return [table, made("p", { className: "hint", text })];
}

/** Lines that the table has at first, and that each press of the button adds. */
const PAGE = 100;

let listedLines = PAGE;
const LISTED = ["Change", "Person", "Name", "Login", "Devices", "From", "Rule and reason"] as const;

/** The whole view as a table: the same as the picture, for those who do not see it, and for paper. */
function drawList({ view }: Shown, lines = PAGE): void {
  listedLines = lines;
  const edges = inOrder(view.edges);
  const caption = `${Math.min(lines, edges.length).toLocaleString("en")} of ${plural(edges.length, "line")}`;
  byId("list-body").replaceChildren(
    edges.length > 0
      ? tableOf(caption, LISTED, edges.slice(0, lines), false)
      : made("p", { text: "Nothing to show." }),
  );
  byId("list-more").hidden = edges.length <= lines;
}
