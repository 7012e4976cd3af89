/** Height of a line, in pixels. Must equal the line height in the style sheet. */
const LINE = 48;

const lists: Readonly<Record<Side, HTMLElement>> = { keys: byId("keys"), devices: byId("devices") };
/** The id of the line that the Tab key focuses, for each of the two lists. */
const entry: Record<Side, string | undefined> = { keys: undefined, devices: undefined };

function drawColumns(state: Shown): void {
  const lines = Math.max(state.rows.keys.length, state.rows.devices.length);
  byId("stage").style.setProperty("--lines", String(lines));
  const [chosen, connected] = [selectedPlaces(state), connectedPlaces(state)];
  for (const side of ["keys", "devices"] as const) {
    const rows = state.rows[side];
    if (!rows.some(({ id }) => id === entry[side])) entry[side] = rows[0]?.id;
    const own = state.selected?.side === side;
    const dim = (place: number) => state.selected !== undefined && !(own ? chosen : connected).has(place);
    d3.select(lists[side])
      .selectAll<HTMLElement, Row>("li")
      .data(rows, ({ id }) => id)
      .join(newLine)
      .order()
      .attr("aria-level", ({ level }) => level)
      .attr("aria-expanded", ({ kind, open }) => (kind === "group" ? String(open) : null))
      .attr("aria-selected", ({ id }) => String(own && state.selected?.id === id))
      .attr("tabindex", ({ id }) => (id === entry[side] ? 0 : -1))
      .classed("dim", (_, place) => dim(place))
      .each(fillLine);
    byId(`${side}-none`).hidden = rows.length > 0;
  }
}

function newLine(enter: d3Enter): d3Line {
  const line = enter
    .append("li")
    .attr("role", "treeitem")
    .attr("id", ({ id }) => id);
  line.attr("class", ({ kind, level, side }) => `line ${kind} level${level} ${side}`);
  const icon = line
    .append("svg")
    .attr("class", "icon")
    .attr("aria-hidden", "true")
    .attr("viewBox", "0 0 16 16");
  icon.append("use").attr("href", ({ kind, side }) => `#icon-${kind === "item" ? side : `${side}-group`}`);
  const text = line.append("span").attr("class", "text");
  text.append("bdi").attr("class", "name");
  const below = text.append("span").attr("class", "below");
  below.append("bdi").attr("class", "detail");
  below.append("span").attr("class", "state");
  for (const change of ["gained", "lost"])
    line.append("span").attr("class", `badge ${change}`).attr("aria-hidden", "true");
  line.append("span").attr("class", "summary");
  return line;
}

type d3Enter = import("d3-selection").Selection<
  import("d3-selection").EnterElement,
  Row,
  HTMLElement,
  unknown
>;
type d3Line = import("d3-selection").Selection<HTMLLIElement, Row, HTMLElement, unknown>;

function fillLine(this: HTMLElement, row: Row): void {
  const part = (name: string) => this.querySelector<HTMLElement>(`:scope .${name}`);
  const set = (name: string, text: string) => {
    const element = part(name);
    if (element && element.textContent !== text) element.textContent = text;
  };
  set("name", row.name);
  set("detail", row.detail);
  set("state", row.state ?? "");
  set("summary", changesInWords(row));
  for (const change of ["gained", "lost"] as const) {
    const count = row.counts[change];
    set(`badge.${change}`, count === 0 ? "" : `${SIGN[change]}${count}`);
  }
  this.title = `${row.name}\n${row.detail}`;
}

const rowOf = (event: Event): Row | undefined => {
  const line = event.target instanceof Element ? event.target.closest(".line") : null;
  return line ? (d3.select<Element, Row>(line).datum() as Row) : undefined;
};

function focusLine(row: Row | undefined): void {
  if (!row) return;
  byId(entry[row.side] ?? row.id).tabIndex = -1;
  entry[row.side] = row.id;
  const line = byId(row.id);
  line.tabIndex = 0;
  line.focus({ preventScroll: true });
  line.scrollIntoView({ block: "nearest" });
}

/**
 * Handles clicks and the keys of the tree pattern (WAI-ARIA practices). Arrow keys that the pattern does not use for a
 * line move the focus to the other list.
 */
function listen(side: Side): void {
  const list = lists[side];
  list.addEventListener("click", (event) => {
    const row = rowOf(event);
    if (!row) return;
    choose(row);
    focusLine(row);
  });
  list.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const row = rowOf(event);
    const act = row && ACTIONS[event.key];
    if (!act) return;
    event.preventDefault();
    act(row);
  });
}

const ACTIONS: Readonly<Record<string, (row: Row) => void>> = {
  ArrowDown: (row) => focusLine(near(row, 1)),
  ArrowUp: (row) => focusLine(near(row, -1)),
  Home: ({ side }) => focusLine(state.rows[side][0]),
  End: ({ side }) => focusLine(state.rows[side].at(-1)),
  Enter: (row) => choose(row),
  " ": (row) => choose(row),
  Escape: () => clear(),
  ArrowRight: (row) => {
    const { side, kind, open } = row;
    if (kind === "group" && !open) toggle(row);
    else if (kind === "group") focusLine(near(row, 1));
    else if (side === "keys") focusLine(firstConnected(row));
  },
  ArrowLeft: (row) => {
    const { side, kind, open, level } = row;
    if (kind === "group" && open) toggle(row);
    else if (level === 2) focusLine(groupOf(row));
    else if (side === "devices") focusLine(firstConnected(row));
  },
};

const placeOf = ({ side, id }: Row): number => state.rows[side].findIndex((row) => row.id === id);

const near = (row: Row, step: number): Row | undefined => state.rows[row.side][placeOf(row) + step];

const groupOf = (row: Row): Row | undefined =>
  state.rows[row.side].slice(0, placeOf(row)).findLast(({ level }) => level === 1);

function firstConnected(row: Row): Row | undefined {
  const place = placeOf(row);
  return state.rows[otherSide(row.side)].find((_, other) => bitsAt(state, row.side, place, other) !== 0);
}
