import { TypedFastBitSet } from "typedfastbitset";
import type { AccessDevice } from "./facts.ts";
import type { DeviceFilter } from "./keyAdmits.ts";
import { type Pattern, patternOf } from "./pattern.ts";

/** A set of devices, each by its place in a list of uids. */
export type DeviceSet = TypedFastBitSet;

/** Finds the devices that filters are for, once for each filter. */
export class DeviceSets {
  readonly all: DeviceSet = new TypedFastBitSet();
  readonly #names: NamedDevices;
  /** Lists, not sets: a set takes memory for all devices, too much where each device has a tag of its own. */
  readonly #byTag = new Map<string, number[]>();
  readonly #byTags = new Map<string, DeviceSet>();
  readonly #byPattern = new Map<string, DeviceSet | undefined>();

  /** @param placeOf a device's place in the list of uids */
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
   * The devices that the filter is for, as `filterMatches` says it of one.
   * @param broken whether a pattern that does not compile is for every device, or for none
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

  /** Undefined for a pattern that does not compile. */
  #named(pattern: string): DeviceSet | undefined {
    if (!this.#byPattern.has(pattern)) this.#byPattern.set(pattern, this.#find(pattern));
    return this.#byPattern.get(pattern);
  }

  #find(pattern: string): DeviceSet | undefined {
    const compiled = patternOf(pattern);
    return compiled && new TypedFastBitSet(this.#names.matching(compiled));
  }
}

type Named = readonly [name: string, place: number];

/** Devices by their names. A pattern that says how names begin is tried on such names alone. */
class NamedDevices {
  /** In the order of their memory: going through all of them is ten times faster than in the sorted list. */
  readonly #devices: readonly Named[];
  /** Sorted by name, so that names that begin alike are neighbours. */
  readonly #sorted: readonly Named[];

  constructor(devices: readonly Named[]) {
    this.#devices = devices;
    this.#sorted = devices.toSorted(([left], [right]) => (left < right ? -1 : left > right ? 1 : 0));
  }

  /** Places of the devices in whose name the pattern is found. */
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

  /** The place of the first name that does not sort before the text. */
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
