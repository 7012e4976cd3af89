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
