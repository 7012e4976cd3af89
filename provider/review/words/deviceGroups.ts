import type { AccessDevice } from "@gatehouse-access/sdk/policy";
import { DeviceCover, type Trait } from "./deviceCover.ts";

/** Devices that can be said in a few words. */
export type DeviceGroup =
  /** Every device there is. */
  | { readonly kind: "all"; readonly count: number }
  /** Every device that carries the tag. */
  | { readonly kind: "tag"; readonly tag: string; readonly count: number }
  /** Every device whose name begins so. */
  | { readonly kind: "prefix"; readonly prefix: string; readonly count: number }
  /** These, one by one. */
  | { readonly kind: "devices"; readonly devices: readonly AccessDevice[] };

/** Some of the devices, in words. */
export interface DeviceSummary {
  /** One line: names where they are few, else how many, and what they have in common. */
  readonly text: string;
  /** Together exactly these devices; none could be left out. */
  readonly groups: readonly DeviceGroup[];
}

/** So many devices are named; of more it is said what they have in common. Also the most parts of a text. */
const NAMES_MAX = 4;

/**
 * Says sets of devices in words, by the tags and beginnings of names that all devices and no other ones of the set
 * have. Made once for all devices there are (the universe).
 */
export class DeviceGroups {
  readonly #universe: readonly AccessDevice[];
  readonly #places: ReadonlyMap<string, number>;
  readonly #cover: DeviceCover;

  constructor(universe: readonly AccessDevice[]) {
    this.#universe = universe;
    this.#places = new Map(universe.map(({ uid }, place) => [uid, place]));
    this.#cover = new DeviceCover(universe);
  }

  /**
   * Says devices in words.
   * @param uids each once
   * @throws RangeError a device is not of the universe
   */
  of(uids: readonly string[]): DeviceSummary {
    const places = uids.map((uid) => this.#placeOf(uid));
    const count = places.length;
    if (count <= NAMES_MAX) return this.#named(places);
    if (count === this.#universe.length)
      return { text: `all ${count} devices`, groups: [{ kind: "all", count }] };
    const { traits, left } = this.#cover.of(places);
    const [trait] = traits;
    if (trait && traits.length === 1 && left.length === 0) {
      return { text: `${count} devices ${phrase(trait)}`, groups: [groupOf(trait)] };
    }
    const groups = traits.map(groupOf);
    return {
      text: `${count} of ${this.#universe.length} devices: ${this.#partsText(count, traits, left)}`,
      groups: left.length === 0 ? groups : [...groups, ...this.#named(left).groups],
    };
  }

  #placeOf(uid: string): number {
    const place = this.#places.get(uid);
    if (place === undefined) throw new RangeError(`no device of the universe has the uid ${uid}`);
    return place;
  }

  #named(places: readonly number[]): DeviceSummary {
    if (places.length === 0) return { text: "no devices", groups: [] };
    const devices = places.flatMap((place) => this.#universe[place] ?? []);
    return { text: devices.map(({ name }) => name).join(", "), groups: [{ kind: "devices", devices }] };
  }

  /** The first few parts, and how many devices are in none of them. */
  #partsText(count: number, traits: readonly Trait[], left: readonly number[]): string {
    const shown = traits.slice(0, NAMES_MAX);
    const named = left.slice(0, NAMES_MAX - shown.length);
    const said = new Set([...shown.flatMap(({ places }) => places), ...named]);
    const more = count - said.size;
    return [
      ...shown.map((trait) => `${trait.places.length} ${phrase(trait)}`),
      ...(named.length > 0 ? [this.#named(named).text] : []),
      ...(more > 0 ? [`${more} more`] : []),
    ].join(", ");
  }
}

const groupOf = ({ kind, text, places: { length: count } }: Trait): DeviceGroup =>
  kind === "tag" ? { kind, tag: text, count } : { kind, prefix: text, count };

const phrase = ({ kind, text }: Trait) => (kind === "tag" ? `tagged ${text}` : `named ${text}*`);
