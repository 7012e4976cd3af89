// The scripts of the page share one scope: they are joined, in the order of `PAGE_SCRIPTS`, and run as one.

type MapData = import("../data.ts").AccessMapData;
type MapEdge = import("../data.ts").MapEdge;
type Change = import("../data.ts").MapChange;
type Side = "keys" | "devices";

declare const d3: typeof import("d3-selection") & typeof import("d3-shape");

/** Changes as bits, so that many of them are one number. */
const BIT = { gained: 1, lost: 2, kept: 4 } as const;
const CHANGES = ["gained", "lost", "kept"] as const;
const SIGN: Readonly<Record<Change, string>> = { gained: "+", lost: "−", kept: "=" };

/** An element that the page's markup has. */
function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element #${id}`);
  return found as T;
}

const data = JSON.parse(byId("data").textContent) as MapData;

/** The devices of each set, written out. */
const deviceSets = data.deviceSets.map((runs) => {
  const indexes: number[] = [];
  for (let at = 0; at < runs.length; at += 2) {
    for (let index = runs[at] ?? 0; index <= (runs[at + 1] ?? -1); index += 1) indexes.push(index);
  }
  return indexes;
});

const devicesOf = (edge: MapEdge): readonly number[] => deviceSets[edge.devices] ?? [];

/**
 * A name as it can be shown: what has no shape of its own, or turns the direction of reading, is spelled out, so that
 * no name looks like another one.
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

const keyName = (index: number) => shown(data.keys[index]?.name ?? "");
const deviceName = (index: number) => shown(data.devices[index]?.name ?? "");

/** The key, and whose it is. */
function keyTitle(index: number): string {
  const owner = data.keys[index]?.owner;
  return owner === undefined ? keyName(index) : `${shown(owner)} · ${keyName(index)}`;
}

/** A fingerprint's begin, which is enough to tell keys apart at a glance. */
const shortFingerprint = (text: string) => (text.length > 20 ? `${shown(text.slice(0, 19))}…` : shown(text));
