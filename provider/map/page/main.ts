/** Fills the parts of the page that do not depend on the filters: title, facts, summary and notes. */
function drawHead(): void {
  const { title: text, subtitle, notes } = data;
  byId("title").textContent = shown(text);
  document.title = shown(text);
  const { project, stack, service, when, evaluated } = subtitle;
  const facts = Object.entries({ Project: project, Stack: stack, Service: service, Created: when });
  for (const [name, value] of facts)
    if (value !== undefined) byId("facts").append(newElement("div", {}, ...factOf([name, shown(value)])));
  byId("evaluated").textContent = shown(evaluated);
  for (const change of CHANGES) drawCard(change);
  for (const note of notes) byId("notes-list").append(newElement("li", { text: shown(note) }));
  byId("notes").hidden = notes.length === 0;
}

const VERBS: Readonly<Record<Change, readonly [one: string, many: string]>> = {
  gained: ["gains", "gain"],
  lost: ["loses", "lose"],
  kept: ["keeps", "keep"],
};

function drawCard(change: Change): void {
  const own = data.edges.filter((edge) => edge.change === change && existsAt(edge, 0));
  const keys = new Set(own.map(({ key }) => key)).size;
  const sets = [...new Set(own.map(devicesOf))];
  const devices = new Set(sets.flat()).size;
  const [one, many] = VERBS[change];
  const text = `${plural(keys, data.subject)} ${keys === 1 ? one : many} access`;
  byId(`card-${change}`).textContent = keys === 0 ? `No ${data.subject} ${one} access` : text;
  byId(`card-${change}-on`).textContent = keys === 0 ? "" : `on ${plural(devices, "device")}`;
}

function drawChoices(): void {
  const choices = {
    people: data.keys.flatMap(({ owner }) => owner ?? []),
    "key-names": data.keys.map(({ name }) => name),
    tags: data.devices.flatMap(({ tags }) => tags),
    "device-names": data.devices.map(({ name }) => name),
  };
  for (const [id, texts] of Object.entries(choices)) addOptions(byId(id), texts);
  addOptions(
    byId("filter-login"),
    data.edges.flatMap(({ logins }) => logins),
  );
  addOptions(byId("filter-condition"), data.edges.map(conditionOf));
  const [now = "", ...ends] = data.times;
  byId("filter-time-first").textContent = now;
  for (const [index, end] of ends.entries()) {
    const option = newElement("option", { text: `from ${end}` });
    option.value = String(index + 1);
    byId("filter-time").append(option);
  }
}

function addOptions(list: HTMLElement, texts: readonly string[]): void {
  for (const text of [...new Set(texts)].sort(collator.compare)) {
    const option = newElement("option", { text: shown(text) });
    option.value = text;
    list.append(option);
  }
}

const PRINTED_MAX = 2000;
/** Delay in milliseconds between the last input and the application of a filter. */
const PAUSE = 80;

const controls = Object.fromEntries(
  FILTERS.map((name) => [name, byId<HTMLInputElement | HTMLSelectElement>(`filter-${name}`)]),
) as Record<(typeof FILTERS)[number], HTMLInputElement | HTMLSelectElement>;
const form = byId<HTMLFormElement>("filters");

const filtersNow = () => Object.fromEntries(FILTERS.map((name) => [name, controls[name].value])) as Filters;

const opened = new Set<string>();
let state = stateOf(viewOf(filtersNow()), undefined);

function stateOf(view: View, selected: Selected | undefined): Shown {
  const rows = { keys: rowsOf(view, "keys", opened), devices: rowsOf(view, "devices", opened) };
  const row = selected && rows[selected.side].find(({ id }) => id === selected.id);
  const between = bitsBetween(view, rows.keys, rows.devices);
  const still = row && { side: row.side, id: row.id, members: new Set(row.members) };
  return { view, rows, between, selected: still };
}

function show(view: View, selected: Selected | undefined): void {
  const fresh = view !== state.view;
  state = stateOf(view, selected);
  drawMap();
  if (fresh) drawView();
}

function drawMap(): void {
  drawColumns(state);
  drawLinks(state);
  drawDetails(state);
}

function drawView(): void {
  drawList(state);
  drawStatus(state.view);
}

function drawStatus(view: View): void {
  const [keys, devices] = (["keys", "devices"] as const).map(
    (side) => bitsOfAll(view, side).filter((bits) => bits !== 0).length,
  );
  byId("status").textContent =
    `Shown: ${keys} of ${plural(data.keys.length, data.subject)}, with access to ${devices?.toLocaleString("en")} of ${plural(data.devices.length, "device")}`;
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
  root.style.colorScheme = themeNow() === "dark" ? "light" : "dark";
  labelTheme();
}

const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const root = document.documentElement;
const themeNow = () => root.style.colorScheme || (prefersDark.matches ? "dark" : "light");
function labelTheme(): void {
  byId("theme").textContent = themeNow() === "dark" ? "Light theme" : "Dark theme";
}

drawHead();
drawChoices();
for (const side of ["keys", "devices"] as const) {
  listen(side);
  lists[side].addEventListener("scroll", drawLinksSoon, { passive: true });
}
form.addEventListener("input", filterSoon);
form.addEventListener("reset", filterSoon);
form.addEventListener("submit", (event) => event.preventDefault());
byId("theme").addEventListener("click", switchTheme);
prefersDark.addEventListener("change", labelTheme);
byId("details-close").addEventListener("click", () => {
  const row = state.selected && state.rows[state.selected.side].find(({ id }) => id === state.selected?.id);
  clear();
  focusLine(row);
});
byId("details").addEventListener("keydown", (event) => {
  if (event.key === "Escape") byId("details-close").click();
});
byId("list-more").addEventListener("click", () => drawList(state, listedLines + PAGE));
// A printed page cannot show more lines or patterns on demand, so the print shows all patterns, and all lines up to the
// limit.
addEventListener("beforeprint", () => {
  drawList(state, PRINTED_MAX);
  for (const details of document.querySelectorAll("details")) details.open = true;
});
new ResizeObserver(drawLinksSoon).observe(picture);
labelTheme();
drawMap();
drawView();
