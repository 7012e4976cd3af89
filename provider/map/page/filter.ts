/** What the reader wants to see; empty texts ask for nothing. */
interface Filters {
  readonly text: string;
  readonly person: string;
  readonly key: string;
  readonly tag: string;
  readonly device: string;
  readonly login: string;
  readonly change: "all" | "changed" | Change;
}

/** What is left after the filters. */
interface View {
  readonly filtered: boolean;
  /** For each key and device, one after the other, the bits of what is between them. */
  readonly pairs: Uint8Array;
  /** Edges that have a device left, with these devices. */
  readonly edges: readonly VisibleEdge[];
}

interface VisibleEdge {
  readonly edge: MapEdge;
  /** As the filters leave them. */
  readonly devices: readonly number[];
}

const has = (text: string | undefined, part: string): boolean =>
  part === "" || text?.toLowerCase().includes(part) === true;

function keyMatches(index: number, { person, key }: Pick<Filters, "person" | "key">): boolean {
  const found = data.keys[index];
  return has(found?.owner, person) && (has(found?.name, key) || has(found?.fingerprint, key));
}

function deviceMatches(index: number, { tag, device }: Pick<Filters, "tag" | "device">): boolean {
  const found = data.devices[index];
  const tagged = tag === "" || found?.tags.some((one) => has(one, tag)) === true;
  return tagged && (has(found?.name, device) || (device !== "" && has(found?.uid, device)));
}

const keyHasText = (index: number, text: string) =>
  keyMatches(index, { person: text, key: "" }) || keyMatches(index, { person: "", key: text });
const deviceHasText = (index: number, text: string) =>
  deviceMatches(index, { tag: text, device: "" }) || deviceMatches(index, { tag: "", device: text });

const changeMatches = (change: Change, wanted: Filters["change"]) =>
  wanted === "all" || change === wanted || (wanted === "changed" && change !== "kept");

/** Applies the filters. A search finds an access by its key or by its device. */
function viewOf(raw: Filters): View {
  const filters = lowered(raw);
  const width = data.devices.length;
  const pairs = new Uint8Array(data.keys.length * width);
  const keys = data.keys.map((_, index) => keyMatches(index, filters));
  const devices = data.devices.map((_, index) => deviceMatches(index, filters));
  const keysWithText = data.keys.map((_, index) => keyHasText(index, filters.text));
  const devicesWithText = data.devices.map((_, index) => deviceHasText(index, filters.text));
  const edges: VisibleEdge[] = [];
  for (const edge of data.edges) {
    if (!keys[edge.key] || !changeMatches(edge.change, filters.change)) continue;
    if (filters.login !== "" && !edge.logins.includes(raw.login)) continue;
    const whole = keysWithText[edge.key];
    const left = devicesOf(edge).filter((device) => devices[device] && (whole || devicesWithText[device]));
    if (left.length === 0) continue;
    edges.push({ edge, devices: left });
    for (const device of left) {
      const place = edge.key * width + device;
      pairs[place] = (pairs[place] ?? 0) | BIT[edge.change];
    }
  }
  const filtered =
    raw.change !== "all" || Object.entries(raw).some(([name, text]) => name !== "change" && text);
  return { filtered, pairs, edges };
}

const lowered = (filters: Filters): Filters => ({
  ...filters,
  text: filters.text.trim().toLowerCase(),
  person: filters.person.trim().toLowerCase(),
  key: filters.key.trim().toLowerCase(),
  tag: filters.tag.trim().toLowerCase(),
  device: filters.device.trim().toLowerCase(),
});
