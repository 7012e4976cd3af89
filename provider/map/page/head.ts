/** Fills what does not change: title, facts, summary, notes. */
function drawHead(): void {
  const { title: text, subtitle, notes } = data;
  byId("title").textContent = shown(text);
  document.title = shown(text);
  const { project, stack, service, when, domain } = subtitle;
  const facts = Object.entries({ Project: project, Stack: stack, Service: service, Made: when });
  for (const [name, value] of facts) if (value !== undefined) addFact(name, value);
  byId("domain").textContent = shown(domain);
  for (const change of CHANGES) drawCard(change);
  for (const note of notes) byId("notes-list").append(made("li", { text: shown(note) }));
  byId("notes").hidden = notes.length === 0;
}

function addFact(name: string, value: string): void {
  const pair = made("div");
  const description = made("dd");
  description.append(made("bdi", { text: shown(value) }));
  pair.append(made("dt", { text: name }), description);
  byId("facts").append(pair);
}

const VERBS: Readonly<Record<Change, readonly [one: string, many: string]>> = {
  gained: ["gains", "gain"],
  lost: ["loses", "lose"],
  kept: ["keeps", "keep"],
};

function drawCard(change: Change): void {
  const own = data.edges.filter((edge) => edge.change === change);
  const keys = new Set(own.map(({ key }) => key)).size;
  const sets = [...new Set(own.map(devicesOf))];
  const devices = new Set(sets.flat()).size;
  const [one, many] = VERBS[change];
  const text = `${plural(keys, "key")} ${keys === 1 ? one : many} access`;
  byId(`card-${change}`).textContent = keys === 0 ? `No key ${one} access` : text;
  byId(`card-${change}-on`).textContent = keys === 0 ? "" : `on ${plural(devices, "device")}`;
}

/** Fills the lists of what the filters can ask for. */
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
}

function addOptions(list: HTMLElement, texts: readonly string[]): void {
  for (const text of [...new Set(texts)].sort(collator.compare)) {
    const option = made("option", { text: shown(text) });
    option.value = text;
    list.append(option);
  }
}
