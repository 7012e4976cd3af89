import type { AccessDevice } from "@gatehouse-access/sdk/policy";
import { byText } from "../words.ts";

/** A tag or a name prefix that devices have in common. */
export interface Trait {
  readonly kind: "tag" | "prefix";
  readonly text: string;
  /** Indexes of the devices that have the trait, in the list of all devices. */
  readonly places: readonly number[];
}

/** Maximum number of items in the description of a device set. Each item is a device name or a trait. */
const NAMES_MAX = 4;
/** Minimum number of devices that must share a tag or a name prefix before a description uses it. */
const TRAIT_MIN = 3;
const TRAITS_MAX = 16;

/** Describes sets of devices by the tags and name prefixes that only devices in the set have. */
export class DeviceGroups {
  readonly #all: readonly AccessDevice[];
  readonly #places: ReadonlyMap<string, number>;
  readonly #traits: readonly Trait[];
  readonly #traitsOf: readonly (readonly number[])[];

  constructor(all: readonly AccessDevice[]) {
    this.#all = all;
    this.#places = new Map(all.map(({ uid }, place) => [uid, place]));
    this.#traits = [...tags(all), ...prefixes(all)]
      .filter(({ places }) => places.length >= TRAIT_MIN)
      .sort(betterFirst);
    const traitsOf: number[][] = all.map(() => []);
    for (const [trait, { places }] of this.#traits.entries()) {
      for (const place of places) traitsOf[place]?.push(trait);
    }
    this.#traitsOf = traitsOf;
  }

  /**
   * Describes devices on one line: a few devices by name, more devices by their number and traits.
   * @param uids uids of the devices, without duplicates
   * @throws RangeError for an unknown uid
   */
  of(uids: readonly string[]): string {
    const places = uids.map((uid) => this.#placeOf(uid));
    const count = places.length;
    if (count === 0) return "no devices";
    if (count <= NAMES_MAX) return this.#names(places);
    if (count === this.#all.length) return `all ${count} devices`;
    const { traits, left } = this.cover(places);
    const [trait] = traits;
    if (trait && traits.length === 1 && left.length === 0) return `${count} devices ${phrase(trait)}`;
    return `${count} of ${this.#all.length} devices: ${this.#parts(count, traits, left)}`;
  }

  /**
   * Selects traits that describe a set of devices. A trait is a tag or a name prefix that several devices have in
   * common. No device outside the set has a selected trait, and no selected trait is redundant. In the result, `left`
   * contains the devices of the set without a selected trait, in the given order. The selection is greedy: each
   * iteration takes the trait that covers the most remaining devices.
   * @param places indexes of the set's devices in the list of all devices, without duplicates
   */
  cover(places: readonly number[]) {
    const gains = this.#countsOf(places);
    const whole = [...gains.keys()].filter((trait) => gains[trait] === this.#traits[trait]?.places.length);
    const left = new Set(places);
    const chosen: Trait[] = [];
    for (let best = bestOf(whole, gains); best !== undefined; best = bestOf(whole, gains)) {
      const trait = this.#traits[best];
      if (!trait || chosen.length === TRAITS_MAX) break;
      chosen.push(trait);
      for (const place of trait.places) {
        if (!left.delete(place)) continue;
        for (const other of this.#traitsOf[place] ?? []) gains[other] = (gains[other] ?? 0) - 1;
      }
    }
    return { traits: withoutNeedless(chosen), left: [...left] };
  }

  #countsOf(places: readonly number[]): Int32Array {
    const counts = new Int32Array(this.#traits.length);
    for (const place of places) {
      for (const trait of this.#traitsOf[place] ?? []) counts[trait] = (counts[trait] ?? 0) + 1;
    }
    return counts;
  }

  #placeOf(uid: string): number {
    const place = this.#places.get(uid);
    if (place === undefined) throw new RangeError(`there is no device with the uid ${uid}`);
    return place;
  }

  #names(places: readonly number[]): string {
    return places.flatMap((place) => this.#all[place]?.name ?? []).join(", ");
  }

  /** Lists the first few traits and names, and then the number of the remaining devices. */
  #parts(count: number, traits: readonly Trait[], left: readonly number[]): string {
    const shown = traits.slice(0, NAMES_MAX);
    const named = left.slice(0, NAMES_MAX - shown.length);
    const described = new Set([...shown.flatMap(({ places }) => places), ...named]);
    const more = count - described.size;
    return [
      ...shown.map((trait) => `${trait.places.length} ${phrase(trait)}`),
      ...(named.length > 0 ? [this.#names(named)] : []),
      ...(more > 0 ? [`${more} more`] : []),
    ].join(", ");
  }
}

const phrase = ({ kind, text }: Trait) => (kind === "tag" ? `tagged ${text}` : `named ${text}*`);

function tags(devices: readonly AccessDevice[]): Trait[] {
  const tagged = devices.flatMap((device, place) => [...new Set(device.tags)].map((tag) => ({ tag, place })));
  const byTag = Map.groupBy(tagged, ({ tag }) => tag);
  return [...byTag].map(([text, all]) => ({ kind: "tag", text, places: all.map(({ place }) => place) }));
}

/** Matches the end of each segment of a device name: a separator, or the last character before a number. */
const PART_ENDS = /[-_.]|[^\d](?=\d)/gu;

/** Returns the prefixes of device names that end at a segment boundary: `web-` and `web-eu-` for `web-eu-1`. */
function prefixes(devices: readonly AccessDevice[]): Trait[] {
  const sorted = devices
    .map(({ name }, place) => ({ name, place }))
    .sort((left, right) => (left.name < right.name ? -1 : left.name > right.name ? 1 : 0));
  const found = new Map<string, Trait>();
  for (const [start, { name }] of sorted.entries()) {
    for (const match of name.matchAll(PART_ENDS)) {
      const text = name.slice(0, match.index + match[0].length);
      if (found.has(text)) continue;
      // The names are sorted, so all names with this prefix are adjacent.
      let [first, end] = [start, start + 1];
      while (sorted[first - 1]?.name.startsWith(text)) first -= 1;
      while (sorted[end]?.name.startsWith(text)) end += 1;
      found.set(text, { kind: "prefix", text, places: sorted.slice(first, end).map(({ place }) => place) });
    }
  }
  return [...found.values()];
}

/**
 * Sorts traits by number of devices, largest first. Of traits with the same number, tags come before prefixes, since
 * device names can be similar by chance. Shorter traits of the same kind come first.
 */
const betterFirst = (left: Trait, right: Trait): number =>
  right.places.length - left.places.length ||
  byText(right.kind, left.kind) ||
  left.text.length - right.text.length ||
  byText(left.text, right.text);

function bestOf(traits: readonly number[], gains: Int32Array): number | undefined {
  let best: number | undefined;
  let most = TRAIT_MIN - 1;
  for (const trait of traits) {
    const gain = gains[trait] ?? 0;
    if (gain > most) [best, most] = [trait, gain];
  }
  return best;
}

function withoutNeedless(chosen: readonly Trait[]): Trait[] {
  const times = new Map<number, number>();
  const count = (trait: Trait, by: number) => {
    for (const place of trait.places) times.set(place, (times.get(place) ?? 0) + by);
  };
  for (const trait of chosen) count(trait, 1);
  return chosen.filter((trait) => {
    const needed = trait.places.some((place) => times.get(place) === 1);
    if (!needed) count(trait, -1);
    return needed;
  });
}
