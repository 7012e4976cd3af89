import { TypedFastBitSet } from "typedfastbitset";
import type { AccessDevice } from "./facts.ts";
import type { DeviceFilter } from "./keyAdmits.ts";
import { compilePattern, PatternError } from "./pattern.ts";

/** Devices, each by its place in a list of uids. */
export type DeviceSet = TypedFastBitSet;

/** Finds the devices of filters, each filter once. */
export class DeviceSets {
  readonly all: DeviceSet = new TypedFastBitSet();
  readonly #names: [place: number, name: string][] = [];
  readonly #byTag = new Map<string, DeviceSet>();
  readonly #byTags = new Map<string, DeviceSet>();
  readonly #byPattern = new Map<string, DeviceSet | undefined>();

  /** @param placeOf a device's place in the list of uids */
  constructor(devices: readonly AccessDevice[], placeOf: ReadonlyMap<string, number>) {
    for (const { uid, name, tags } of devices) {
      const place = placeOf.get(uid);
      if (place === undefined) throw new Error(`the device ${uid} is not in the list of uids`);
      this.all.add(place);
      this.#names.push([place, name]);
      for (const tag of tags) this.#tagged(tag).add(place);
    }
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
    for (const tag of tags) union.union(this.#tagged(tag));
    this.#byTags.set(name, union);
    return union;
  }

  #tagged(tag: string): DeviceSet {
    const known = this.#byTag.get(tag);
    if (known) return known;
    const made = new TypedFastBitSet();
    this.#byTag.set(tag, made);
    return made;
  }

  /** Undefined for a pattern that does not compile. */
  #named(pattern: string): DeviceSet | undefined {
    if (!this.#byPattern.has(pattern)) this.#byPattern.set(pattern, this.#find(pattern));
    return this.#byPattern.get(pattern);
  }

  #find(pattern: string): DeviceSet | undefined {
    try {
      const { test } = compilePattern(pattern);
      const found = new TypedFastBitSet();
      for (const [place, name] of this.#names) if (test(name)) found.add(place);
      return found;
    } catch (error) {
      if (error instanceof PatternError) return undefined;
      throw error;
    }
  }
}
