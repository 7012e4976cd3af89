interface Cell {
  readonly text: string;
  /** Regular expressions that `text` describes in words. The cell shows the expressions on demand. */
  readonly patterns?: readonly string[];
  readonly change?: Change;
}

function newElement<K extends keyof HTMLElementTagNameMap>(
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

/**
 * The columns of a table of edges. `Key` contains the key and its owner, and `Name` contains only the key. Both columns
 * have the header "Key", or "User" in identity mode.
 */
const COLUMNS = {
  Change: ({ edge }) => ({ text: `${SIGN[edge.change]} ${edge.change}`, change: edge.change }),
  Person: ({ edge }) => {
    const owner = data.keys[edge.key]?.owner;
    return { text: owner === undefined ? "unknown" : shown(owner) };
  },
  "Changed by": ({ edge }) => changeOf(edge) ?? { text: "" },
  Key: ({ edge }) => ({ text: keyTitle(edge.key) }),
  Name: ({ edge }) => ({ text: keyName(edge.key) }),
  Condition: ({ edge }) => ({ text: edge.condition ? conditionOf(edge) : "none" }),
  Until: ({ edge }) => ({ text: edge.until ?? "no end" }),
  Login: ({ edge }) => ({ text: listed(edge.logins) }),
  Devices: ({ devices }) => ({ text: devicesInWords(devices) }),
  From: ({ edge }) => ({ text: addressesOf(edge) }),
  "Rule and reason": ({ edge }) => reasonOf(edge),
} as const satisfies Record<string, (edge: VisibleEdge) => Cell>;

type Column = keyof typeof COLUMNS;

/** The columns that appear only in maps of users, and the columns that appear only in maps of public keys. */
const COLUMNS_OF_USERS: readonly Column[] = ["Condition"];
const COLUMNS_OF_KEYS: readonly Column[] = ["Person"];
/** The columns that a map shows only if it has a value for them. */
const OPTIONAL_COLUMNS: Readonly<Partial<Record<Column, boolean>>> = {
  Until: data.edges.some(({ until }) => until !== undefined),
  "Changed by": data.keys.some(({ changedBy }) => changedBy !== undefined),
};

/**
 * Creates a table of edges in a scrollable box that can receive the keyboard focus.
 * @param below returns the content of an additional row below an edge, across the whole table; undefined for no row
 */
function tableOf(
  caption: string,
  every: readonly Column[],
  edges: readonly VisibleEdge[],
  below: (edge: MapEdge) => Cell | undefined,
): HTMLElement {
  const others = data.subject === "user" ? COLUMNS_OF_KEYS : COLUMNS_OF_USERS;
  const columns = every.filter((column) => !others.includes(column) && OPTIONAL_COLUMNS[column] !== false);
  const table = newElement("table", {}, newElement("caption", { text: caption }));
  const head = table.createTHead().insertRow();
  const headers = columns.map((column) => (column === "Name" || column === "Key" ? Subject : column));
  for (const text of headers) {
    const cell = newElement("th", { text });
    cell.scope = "col";
    head.append(cell);
  }
  for (const edge of edges) {
    const part = newElement("tbody");
    const line = part.insertRow();
    for (const [index, column] of columns.entries()) {
      // On a phone, each cell is on its own line, and the line begins with the header.
      addCell(line, COLUMNS[column](edge)).dataset.header = headers[index];
    }
    const more = below(edge.edge);
    if (more) {
      const wide = addCell(part.insertRow(), more);
      wide.colSpan = columns.length;
      wide.className = "below";
    }
    table.append(part);
  }
  const box = newElement("div", { className: "scroll" }, table);
  box.tabIndex = 0;
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", caption);
  return box;
}

function addCell(line: HTMLTableRowElement, { text, change, patterns = [] }: Cell): HTMLTableCellElement {
  const cell = line.insertCell();
  const content = newElement("bdi", { text, ...(change && { className: `change ${change}` }) });
  const expressions = patterns.map((pattern) => newElement("code", { text: shown(pattern) }));
  cell.append(
    patterns.length === 0
      ? content
      : newElement("details", {}, newElement("summary", {}, content), ...expressions),
  );
  return cell;
}

const NAMES_MAX = 4;

/** Lists devices by name, or by group if there are more than {@link NAMES_MAX} devices. */
function devicesInWords(devices: readonly number[]): string {
  if (devices.length <= NAMES_MAX) return devices.map(deviceName).join(", ");
  if (devices.length === data.devices.length) return `all ${plural(devices.length, "device")}`;
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

function reasonOf({ change, rule, cause }: MapEdge): Cell {
  const [by, because] = [rule, cause ?? -1].map((index) => data.texts[index]);
  const patterns = [...new Set([because, by].flatMap((text) => text?.patterns ?? []))];
  const allowed = shown(by?.text ?? "");
  if (!because) return { text: allowed, patterns };
  return { text: `${shown(because.text)}; ${change === "lost" ? "before" : "now"} ${allowed}`, patterns };
}

/** Returns the last change to an edge's key, in a map of drift. */
function changeOf({ key }: MapEdge): Cell | undefined {
  const changedBy = data.keys[key]?.changedBy;
  return changedBy === undefined ? undefined : { text: shown(changedBy) };
}

const listed = (texts: readonly string[]) => texts.map(shown).join(", ");

/** Lists the addresses of an edge, or "any address" if the edge has all evaluated addresses. */
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

/** Shows the details of the selected line, or an overview of the changes if no line is selected. */
function drawDetails(state: Shown): void {
  const { selected } = state;
  byId("details-close").hidden = selected === undefined;
  const row = selected && state.rows[selected.side].find(({ id }) => id === selected.id);
  if (row) drawRow(state, row);
  else drawOverview(state);
  panel.scrollTop = 0;
}

function drawOverview({ view }: Shown): void {
  byId("details-title").textContent = "Changes";
  const changed = inOrder(view.edges.filter(({ edge }) => edge.change !== "kept" || isAltered(edge)));
  if (changed.length === 0) {
    panel.replaceChildren(
      newElement("p", { text: `No ${data.subject} gains or loses access in this view.` }),
    );
    return;
  }
  const hint = newElement("p", {
    className: "quiet",
    text: `Select a ${data.subject} or a device to see its details.`,
  });
  panel.replaceChildren(
    hint,
    ...limited(
      "Changes of access",
      ["Change", "Key", "Login", "Devices", "Condition", "Until"],
      changed,
      changeOf,
    ),
  );
}

function drawRow({ view }: Shown, row: Row): void {
  byId("details-title").textContent = row.name;
  const members = new Set(row.members);
  const [facts, table] =
    row.side === "keys"
      ? [factsOfKeys(row), tableOfKeys(view, members)]
      : [factsOfDevices(row), tableOfDevices(view, members)];
  panel.replaceChildren(newElement("dl", { className: "facts" }, ...facts.flatMap(factOf)), ...table);
}

type Fact = readonly [name: string, value: string];

function factsOfKeys({ members, counts }: Row): Fact[] {
  const reach: Fact = ["Reach", countsInWords(counts, "device")];
  if (members.length > 1) return [[`${Subject}s`, members.map(keyName).join(", ")], reach];
  const [index = 0] = members;
  const { fingerprint = "", owner, kind, changedBy } = data.keys[index] ?? {};
  const change: Fact[] = changedBy === undefined ? [] : [["Change", shown(changedBy)]];
  if (kind) return [["Name", keyName(index)], ["Kind", kind], ["Id", shown(fingerprint)], reach, ...change];
  const person = owner === undefined ? "unknown" : shown(owner);
  return [["Key", keyName(index)], ["Fingerprint", shown(fingerprint)], ["Person", person], reach, ...change];
}

function factsOfDevices({ members, counts }: Row): Fact[] {
  const reached: Fact = ["Reached by", countsInWords(counts, data.subject)];
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
  newElement("dt", { text: name }),
  newElement("dd", {}, newElement("bdi", { text: value })),
];

function tableOfKeys({ edges }: View, members: ReadonlySet<number>): HTMLElement[] {
  const own = inOrder(edges.filter(({ edge }) => members.has(edge.key)));
  const key: readonly Column[] = members.size > 1 ? ["Name"] : [];
  return limited(
    "Reachable devices, with reasons",
    ["Change", ...key, "Login", "Devices", "From", "Condition", "Until"],
    own,
    reasonOf,
  );
}

function tableOfDevices({ edges }: View, members: ReadonlySet<number>): HTMLElement[] {
  const own = edges
    .map(({ edge, devices }) => ({ edge, devices: devices.filter((device) => members.has(device)) }))
    .filter(({ devices }) => devices.length > 0);
  const some: readonly Column[] = members.size > 1 ? ["Devices"] : [];
  return limited(
    `${Subject}s with access, with reasons`,
    ["Change", "Key", "Login", ...some, "From", "Condition", "Until"],
    inOrder(own),
    reasonOf,
  );
}

function limited(
  caption: string,
  columns: readonly Column[],
  edges: readonly VisibleEdge[],
  below: (edge: MapEdge) => Cell | undefined,
): HTMLElement[] {
  if (edges.length === 0) return [newElement("p", { text: "No access in this view." })];
  const table = tableOf(caption, columns, edges.slice(0, DETAILS_MAX), below);
  if (edges.length <= DETAILS_MAX) return [table];
  const text = `Hidden: ${plural(edges.length - DETAILS_MAX, "more line")}. Use a filter to see hidden lines.`;
  return [table, newElement("p", { className: "quiet", text })];
}

/** Number of lines that the table shows initially, and that each click on the button adds. */
const PAGE = 100;

let listedLines = PAGE;
const LISTED = [
  "Change",
  "Person",
  "Name",
  "Login",
  "Devices",
  "From",
  "Condition",
  "Until",
  "Changed by",
  "Rule and reason",
] as const;

/**
 * Shows the access that matches the filters as a table, for screen readers and for printing. The table has the same
 * content as the picture.
 */
function drawList({ view }: Shown, lines = PAGE): void {
  listedLines = lines;
  const edges = inOrder(view.edges);
  const caption = `${Math.min(lines, edges.length).toLocaleString("en")} of ${plural(edges.length, "line")}`;
  byId("list-body").replaceChildren(
    edges.length > 0
      ? tableOf(caption, LISTED, edges.slice(0, lines), () => undefined)
      : newElement("p", { text: "No access matches the filters." }),
  );
  byId("list-more").hidden = edges.length <= lines;
}
