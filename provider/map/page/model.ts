// The scripts of the page share one scope: they are concatenated in the order of `PAGE_SCRIPTS` and run as one script.

type MapData = import("../data.ts").AccessMapData;
type MapEdge = import("../data.ts").MapEdge;
type Change = import("../data.ts").MapChange;
type Side = "keys" | "devices";

declare const d3: typeof import("d3-selection") & typeof import("d3-shape");

/** The bit flag of each kind of change. The bit flags of several changes can be combined in one number. */
const BIT = { gained: 1, lost: 2, kept: 4 } as const;
/** The bit flag of each kind of change for access without a condition. */
const PLAIN_BIT = { gained: 8, lost: 16, kept: 32 } as const;
const CHANGES = ["gained", "lost", "kept"] as const;
const SIGN: Readonly<Record<Change, string>> = { gained: "+", lost: "−", kept: "=" };

function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element #${id}`);
  return found as T;
}

const data = JSON.parse(byId("data").textContent) as MapData;

const deviceSets = data.deviceSets.map((runs) => {
  const indexes: number[] = [];
  for (let at = 0; at < runs.length; at += 2) {
    for (let index = runs[at] ?? 0; index <= (runs[at + 1] ?? -1); index += 1) indexes.push(index);
  }
  return indexes;
});

const devicesOf = (edge: MapEdge): readonly number[] => deviceSets[edge.devices] ?? [];

/**
 * Returns a name in a form that is safe to display. Replaces invisible characters, and characters that change the
 * reading direction, by their code points, so that different names never look the same.
 */
function shown(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}]/gu,
    (character) => `⟨U+${character.codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0")}⟩`,
  );
}

const collator = new Intl.Collator("en", { numeric: true });
const plural = (count: number, one: string) =>
  `${count.toLocaleString("en")} ${one}${count === 1 ? "" : "s"}`;

/** The word for an item of `data.keys`, with a capital letter. */
const Subject = data.subject === "user" ? "User" : "Key";

/** Returns the condition of an edge's access, as text. */
const conditionOf = ({ condition }: MapEdge): string =>
  condition === undefined ? "without a condition" : data.conditions[condition];

/** Returns true if the access exists at a given time. @param time an index in `data.times` */
const existsAt = ({ times }: MapEdge, time: number): boolean => times?.includes(time) ?? true;

/** Returns true if the access is kept, but its condition or expiry time changes. */
const isAltered = ({ change, cause }: MapEdge): boolean => change === "kept" && cause !== undefined;

const keyName = (index: number) => shown(data.keys[index]?.name ?? "");
const deviceName = (index: number) => shown(data.devices[index]?.name ?? "");

function keyTitle(index: number): string {
  const owner = data.keys[index]?.owner;
  return owner === undefined ? keyName(index) : `${shown(owner)} · ${keyName(index)}`;
}

/** Returns the first characters of a fingerprint, which are usually enough to distinguish keys. */
const shortFingerprint = (text: string) => (text.length > 20 ? `${shown(text.slice(0, 19))}…` : shown(text));

const FILTERS = ["text", "person", "key", "tag", "device", "login", "condition", "time", "change"] as const;

/** The selected filters. An empty filter matches everything. */
type Filters = Readonly<Record<(typeof FILTERS)[number], string>>;

interface View {
  readonly filtered: boolean;
  /** The changes between each key and each device, as bit flags in row-major order. Each key has one row. */
  readonly pairs: Uint8Array;
  /** The edges that match the filters, each with the devices that match the filters. */
  readonly edges: readonly VisibleEdge[];
}

interface VisibleEdge {
  readonly edge: MapEdge;
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

const changeMatches = (edge: MapEdge, wanted: string) =>
  wanted === "all" ||
  edge.change === wanted ||
  (wanted === "changed" && (edge.change !== "kept" || isAltered(edge)));

/** Applies the filters. The search string can match the key or the device of an edge. */
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
    if (!keys[edge.key] || !changeMatches(edge, filters.change)) continue;
    // An empty filter selects index 0, the time for which the map was evaluated.
    if (!existsAt(edge, Number(filters.time))) continue;
    if (filters.login !== "" && !edge.logins.includes(raw.login)) continue;
    if (filters.condition !== "" && conditionOf(edge) !== raw.condition) continue;
    const whole = keysWithText[edge.key];
    const left = devicesOf(edge).filter((device) => devices[device] && (whole || devicesWithText[device]));
    if (left.length === 0) continue;
    edges.push({ edge, devices: left });
    for (const device of left) {
      const place = edge.key * width + device;
      const plain = edge.condition === undefined ? PLAIN_BIT[edge.change] : 0;
      pairs[place] = (pairs[place] ?? 0) | BIT[edge.change] | plain;
    }
  }
  const filtered =
    raw.change !== "all" || Object.entries(raw).some(([name, text]) => name !== "change" && text);
  return { filtered, pairs, edges };
}

function lowered(filters: Filters): Filters {
  const texts = Object.entries(filters).map(([name, text]) => [name, text.trim().toLowerCase()]);
  return { ...Object.fromEntries(texts), login: filters.login };
}
