const FILTERS = ["text", "person", "key", "tag", "device", "login"] as const;
/** Most lines of the table on paper. */
const PRINTED_MAX = 2000;
/** How long the reader must pause for a filter to be applied, in milliseconds. */
const PAUSE = 80;

const controls = Object.fromEntries(
  FILTERS.map((name) => [name, byId<HTMLInputElement | HTMLSelectElement>(`filter-${name}`)]),
) as Record<(typeof FILTERS)[number], HTMLInputElement | HTMLSelectElement>;
const form = byId<HTMLFormElement>("filters");

function filtersNow(): Filters {
  const texts = Object.fromEntries(FILTERS.map((name) => [name, controls[name].value]));
  const change = new FormData(form).get("change");
  return { ...texts, change } as Filters;
}

const opened = new Set<string>();
let state = stateOf(viewOf(filtersNow()), undefined);

function stateOf(view: View, selected: Selected | undefined): Shown {
  const rows = { keys: rowsOf(view, "keys", opened), devices: rowsOf(view, "devices", opened) };
  const row = selected && rows[selected.side].find(({ id }) => id === selected.id);
  const between = bitsBetween(view, rows.keys, rows.devices);
  const still = row && { side: row.side, id: row.id, members: new Set(row.members) };
  return { view, rows, between, selected: still };
}

/** Shows another view or choice. */
function show(view: View, selected: Selected | undefined): void {
  const fresh = view !== state.view;
  state = stateOf(view, selected);
  drawColumns(state);
  drawLinks(state);
  drawDetails(state);
  if (!fresh) return;
  drawList(state);
  drawStatus(view);
}

function drawStatus({ pairs, edges }: View): void {
  const width = data.devices.length;
  const keys = new Set(edges.map(({ edge }) => edge.key)).size;
  let devices = 0;
  for (let device = 0; device < width; device += 1) {
    if (data.keys.some((_, key) => pairs[key * width + device])) devices += 1;
  }
  byId("status").textContent =
    `Shown: ${keys} of ${plural(data.keys.length, "key")}, with access to ${devices.toLocaleString("en")} of ${plural(width, "device")}`;
}

function toggle({ id, kind }: Row): void {
  if (kind !== "group") return;
  if (!opened.delete(id)) opened.add(id);
  show(state.view, state.selected);
}

function choose(row: Row): void {
  const again = state.selected?.id === row.id;
  if (row.kind === "group" && (again || !row.open) && !opened.delete(row.id)) opened.add(row.id);
  show(state.view, { side: row.side, id: row.id, members: new Set(row.members) });
  const other = otherSide(row.side);
  const places = [...connectedPlaces(state).keys()].sort((left, right) => left - right);
  const [first] = places;
  const list = lists[other];
  const inSight = (place: number) =>
    place * LINE >= list.scrollTop && (place + 1) * LINE <= list.scrollTop + list.clientHeight;
  if (first !== undefined && !places.some(inSight)) list.scrollTop = first * LINE;
}

function clear(): void {
  if (state.selected) show(state.view, undefined);
}

let redraw = 0;
function drawLinksSoon(): void {
  cancelAnimationFrame(redraw);
  redraw = requestAnimationFrame(() => drawLinks(state));
}

let waiting: ReturnType<typeof setTimeout> | undefined;
function filterSoon(): void {
  clearTimeout(waiting);
  waiting = setTimeout(() => show(viewOf(filtersNow()), state.selected), PAUSE);
}

function switchTheme(): void {
  const dark = document.documentElement.dataset.theme ?? (darkWanted.matches ? "dark" : "light");
  document.documentElement.dataset.theme = dark === "dark" ? "light" : "dark";
  sayTheme();
}

const darkWanted = matchMedia("(prefers-color-scheme: dark)");
function sayTheme(): void {
  const theme = document.documentElement.dataset.theme ?? (darkWanted.matches ? "dark" : "light");
  byId("theme").textContent = theme === "dark" ? "Light theme" : "Dark theme";
}

drawHead();
drawChoices();
for (const side of ["keys", "devices"] as const) {
  listen(side, { state: () => state, choose, toggle, clear });
  lists[side].addEventListener("scroll", drawLinksSoon, { passive: true });
}
form.addEventListener("input", filterSoon);
form.addEventListener("reset", filterSoon);
form.addEventListener("submit", (event) => event.preventDefault());
byId("theme").addEventListener("click", switchTheme);
darkWanted.addEventListener("change", sayTheme);
byId("details-close").addEventListener("click", () => {
  const row = state.selected && state.rows[state.selected.side].find(({ id }) => id === state.selected?.id);
  clear();
  focusLine(row);
});
byId("details").addEventListener("keydown", (event) => {
  if (event.key === "Escape") byId("details-close").click();
});
byId("list-more").addEventListener("click", () => drawList(state, listedLines + PAGE));
// Paper has no button to press.
addEventListener("beforeprint", () => drawList(state, PRINTED_MAX));
new ResizeObserver(drawLinksSoon).observe(picture);
sayTheme();
drawColumns(state);
drawLinks(state);
drawDetails(state);
drawList(state);
drawStatus(state.view);
