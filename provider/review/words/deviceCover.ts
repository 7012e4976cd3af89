import type { AccessDevice } from "@gatehouse-access/sdk/policy";
import { byText } from "./order.ts";
import { prefixesOf } from "./prefixes.ts";

/** What devices have in common: a tag, or the beginning of their names; every device that has it. */
export interface Trait {
  readonly kind: "tag" | "prefix";
  readonly text: string;
  /** Places in the list of all devices. */
  readonly places: readonly number[];
}

/** Traits and devices that together are a set of devices. */
export interface Cover {
  /** None of them could be left out. */
  readonly traits: readonly Trait[];
  /** Places of the devices that no trait has, in the order in which they were given. */
  readonly left: readonly number[];
}

/** A trait of fewer devices is no shorter than their names. */
const TRAIT_MIN = 3;
/** Most traits of one cover. */
const TRAITS_MAX = 16;

/** Finds what sets of devices have in common, and no other devices have. */
export class DeviceCover {
  /** The best first. */
  readonly #traits: readonly Trait[];
  /** Of each device the places of its traits in their list. */
  readonly #traitsOf: readonly (readonly number[])[];

  constructor(devices: readonly AccessDevice[]) {
    this.#traits = [...tags(devices), ...prefixes(devices)]
      .filter(({ places }) => places.length >= TRAIT_MIN)
      .sort(betterFirst);
    const traitsOf: number[][] = devices.map(() => []);
    for (const [trait, { places }] of this.#traits.entries()) {
      for (const place of places) traitsOf[place]?.push(trait);
    }
    this.#traitsOf = traitsOf;
  }

  /**
   * Few traits rather than the fewest: again and again the one with the most devices that no earlier one has.
   * @param places of the devices, each once
   */
  of(places: readonly number[]): Cover {
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

  /** Of each trait how many of the devices have it. */
  #countsOf(places: readonly number[]): Int32Array {
    const counts = new Int32Array(this.#traits.length);
    for (const place of places) {
      for (const trait of this.#traitsOf[place] ?? []) counts[trait] = (counts[trait] ?? 0) + 1;
    }
    return counts;
  }
}

function tags(devices: readonly AccessDevice[]): Trait[] {
  const byTag = new Map<string, number[]>();
  for (const [place, device] of devices.entries()) {
    for (const tag of new Set(device.tags)) {
      const places = byTag.get(tag);
      if (places) places.push(place);
      else byTag.set(tag, [place]);
    }
  }
  return [...byTag].map(([text, places]) => ({ kind: "tag", text, places }));
}

function prefixes(devices: readonly AccessDevice[]): Trait[] {
  const found = prefixesOf(devices.map(({ name }, place) => ({ name, place })));
  return [...found].map(([text, named]) => ({
    kind: "prefix",
    text,
    places: named.map(({ place }) => place),
  }));
}

/** The larger; of alike ones a tag, which is meant, before a name, which may be chance; the shorter one. */
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

/** Later traits may have all devices of an earlier one. */
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
