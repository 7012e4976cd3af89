import { TypedFastBitSet } from "typedfastbitset";
import type { AccessDevice, DeviceFilter } from "./decisions.ts";
import { type Pattern, patternOf } from "./pattern.ts";

/** A set of devices. Each device is represented by its index in a list of uids. */
export type DeviceSet = TypedFastBitSet;

/** The set without devices. */
export const NO_DEVICES: DeviceSet = new TypedFastBitSet();

/** Returns the union of several sets of devices. Skips undefined sets. */
export function unionOf(sets: readonly (DeviceSet | undefined)[]): DeviceSet {
  const union = new TypedFastBitSet();
  for (const set of new Set(sets)) if (set) union.union(set);
  return union;
}

/** The device sets of a policy. Indexes the devices by name and by tag, and caches the set of each filter. */
export class DeviceSets {
  readonly all: DeviceSet = new TypedFastBitSet();
  readonly #names: NamedDevices;
  /**
   * Device indexes by tag. The values are arrays: with a {@link DeviceSet} for each tag, a fleet in which each device
   * has its own tag would use too much memory.
   */
  readonly #byTag = new Map<string, number[]>();
  readonly #byTags = new Map<string, DeviceSet>();
  readonly #byPattern = new Map<string, DeviceSet | undefined>();

  /**
   * Indexes devices by name and by tag.
   * @param placeOf the index of each device in the list of uids
   */
  constructor(devices: readonly AccessDevice[], placeOf: ReadonlyMap<string, number>) {
    const names: [name: string, place: number][] = [];
    for (const { uid, name, tags } of devices) {
      const place = placeOf.get(uid);
      if (place === undefined) throw new Error(`the device ${uid} is not in the list of uids`);
      this.all.add(place);
      names.push([name, place]);
      for (const tag of tags) {
        const tagged = this.#byTag.get(tag);
        if (tagged) tagged.push(place);
        else this.#byTag.set(tag, [place]);
      }
    }
    this.#names = new NamedDevices(names);
  }

  /**
   * Returns the devices that a filter matches.
   * @param broken the result for an invalid pattern: true for every device, false for no device
   */
  of({ hostname, tags }: DeviceFilter, broken: boolean): DeviceSet {
    if (hostname) return this.#named(hostname) ?? (broken ? this.all : new TypedFastBitSet());
    if (!tags || tags.length === 0) return this.all;
    const name = JSON.stringify(tags);
    const known = this.#byTags.get(name);
    if (known) return known;
    const union = new TypedFastBitSet();
    for (const tag of tags) for (const place of this.#byTag.get(tag) ?? []) union.add(place);
    this.#byTags.set(name, union);
    return union;
  }

  #named(pattern: string): DeviceSet | undefined {
    if (!this.#byPattern.has(pattern)) {
      const compiled = patternOf(pattern);
      this.#byPattern.set(pattern, compiled && new TypedFastBitSet(this.#names.matching(compiled)));
    }
    return this.#byPattern.get(pattern);
  }
}

type Named = readonly [name: string, place: number];

/**
 * An index of devices by name. If the possible first characters of a match are known, only the names that begin with
 * these characters are tested.
 */
class NamedDevices {
  /**
   * The devices in the order in which they are in memory. Iterating over this list is ten times faster than iterating
   * over the sorted list.
   */
  readonly #devices: readonly Named[];
  readonly #sorted: readonly Named[];

  constructor(devices: readonly Named[]) {
    this.#devices = devices;
    this.#sorted = devices.toSorted(([left], [right]) => (left < right ? -1 : left > right ? 1 : 0));
  }

  *matching({ begins, test }: Pattern): Generator<number> {
    if (!begins || begins.includes("")) {
      for (const [name, place] of this.#devices) if (test(name)) yield place;
      return;
    }
    for (const begin of begins) {
      for (let index = this.#firstFrom(begin); index < this.#sorted.length; index += 1) {
        const [name, place] = this.#sorted[index] as Named;
        if (!name.startsWith(begin)) break;
        if (test(name)) yield place;
      }
    }
  }

  #firstFrom(text: string): number {
    let low = 0;
    let high = this.#sorted.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#sorted[middle]?.[0] ?? "") < text) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
