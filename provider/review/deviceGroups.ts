import type { AccessDevice } from "@gatehouse-access/sdk/policy";
import { byText } from "./order.ts";
import { prefixesOf } from "./prefixes.ts";

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

/** What a tag or a beginning of names has in common. */
interface Candidate {
  readonly kind: "tag" | "prefix";
  readonly text: string;
  readonly devices: readonly AccessDevice[];
}

/** So many devices are named; of more it is said what they have in common. Also the most parts of a text. */
const NAMES_MAX = 4;
/** A group of fewer is no shorter than their names. */
const GROUP_MIN = 3;
/** Most groups of one summary; what is left is named. */
const GROUPS_MAX = 16;

/**
 * Says sets of devices in words, by the tags and beginnings of names that all devices and no other ones of the set
 * have. Made once for all devices there are (the universe).
 */
export class DeviceGroups {
  readonly #count: number;
  readonly #candidates = new Map<string, Candidate[]>();

  constructor(universe: readonly AccessDevice[]) {
    this.#count = universe.length;
    for (const { uid } of universe) this.#candidates.set(uid, []);
    for (const candidate of [...tagged(universe), ...prefixed(universe)]) {
      for (const { uid } of candidate.devices) this.#candidates.get(uid)?.push(candidate);
    }
  }

  /**
   * Of the devices what is said of them. Few groups rather than the fewest: the largest first.
   * @throws RangeError a device is not of the universe
   */
  of(devices: readonly AccessDevice[]): DeviceSummary {
    const whole = this.#wholeIn(devices);
    if (devices.length <= NAMES_MAX) return named(devices);
    const count = devices.length;
    if (count === this.#count) return { text: `all ${count} devices`, groups: [{ kind: "all", count }] };
    const one = whole.find((candidate) => candidate.devices.length === count);
    if (one) return { text: `${count} devices ${phrase(one)}`, groups: [groupOf(one)] };
    const { chosen, left } = cover(devices, whole);
    const groups = chosen.map(groupOf);
    return {
      text: `${count} of ${this.#count} devices: ${partsText(devices, chosen, left)}`,
      groups: left.length === 0 ? groups : [...groups, { kind: "devices", devices: left }],
    };
  }

  /** Candidates of which every device is among these, the best first. */
  #wholeIn(devices: readonly AccessDevice[]): Candidate[] {
    const counts = new Map<Candidate, number>();
    for (const { uid } of devices) {
      const candidates = this.#candidates.get(uid);
      if (!candidates) throw new RangeError(`no device of the universe has the uid ${uid}`);
      for (const candidate of candidates) counts.set(candidate, (counts.get(candidate) ?? 0) + 1);
    }
    const whole = [...counts].filter(([candidate, count]) => candidate.devices.length === count);
    return whole.map(([candidate]) => candidate).sort(betterFirst);
  }
}

function tagged(universe: readonly AccessDevice[]): Candidate[] {
  const byTag = Map.groupBy(
    universe.flatMap((device) => [...new Set(device.tags)].map((tag) => ({ tag, device }))),
    ({ tag }) => tag,
  );
  return [...byTag].map(([text, pairs]) => ({
    kind: "tag",
    text,
    devices: pairs.map(({ device }) => device),
  }));
}

function prefixed(universe: readonly AccessDevice[]): Candidate[] {
  const prefixes = prefixesOf(universe, ({ name }) => name);
  return [...prefixes].map(([text, devices]) => ({ kind: "prefix", text, devices }));
}

/** The larger; of alike ones a tag, which is meant, before a name, which may be chance; the shorter one. */
const betterFirst = (left: Candidate, right: Candidate): number =>
  right.devices.length - left.devices.length ||
  byText(right.kind, left.kind) ||
  left.text.length - right.text.length ||
  byText(left.text, right.text);

/** Greedy: again and again the candidate with the most devices that no earlier one has. */
function cover(devices: readonly AccessDevice[], whole: readonly Candidate[]) {
  const left = new Set(devices.map(({ uid }) => uid));
  const chosen: Candidate[] = [];
  for (let best = bestOf(whole, left); best && chosen.length < GROUPS_MAX; best = bestOf(whole, left)) {
    chosen.push(best);
    for (const { uid } of best.devices) left.delete(uid);
  }
  return { chosen: withoutNeedless(chosen), left: devices.filter(({ uid }) => left.has(uid)) };
}

function bestOf(whole: readonly Candidate[], left: ReadonlySet<string>): Candidate | undefined {
  let best: Candidate | undefined;
  let most = GROUP_MIN - 1;
  for (const candidate of whole) {
    // They come by size: no later one can have more.
    if (candidate.devices.length <= most) break;
    const gain = candidate.devices.reduce((sum, { uid }) => sum + (left.has(uid) ? 1 : 0), 0);
    if (gain > most) [best, most] = [candidate, gain];
  }
  return best;
}

/** Later groups may have covered an earlier one. */
function withoutNeedless(chosen: readonly Candidate[]): Candidate[] {
  let kept = [...chosen];
  for (const candidate of chosen) {
    const others = kept.filter((other) => other !== candidate);
    const covered = new Set(others.flatMap((other) => other.devices.map(({ uid }) => uid)));
    if (candidate.devices.every(({ uid }) => covered.has(uid))) kept = others;
  }
  return kept;
}

const groupOf = ({ kind, text, devices: { length: count } }: Candidate): DeviceGroup =>
  kind === "tag" ? { kind, tag: text, count } : { kind, prefix: text, count };

const phrase = ({ kind, text }: Candidate) => (kind === "tag" ? `tagged ${text}` : `named ${text}*`);

function named(devices: readonly AccessDevice[]): DeviceSummary {
  if (devices.length === 0) return { text: "no devices", groups: [] };
  return { text: devices.map(({ name }) => name).join(", "), groups: [{ kind: "devices", devices }] };
}

/** The first few parts, and how many devices are in none of them. */
function partsText(
  devices: readonly AccessDevice[],
  chosen: readonly Candidate[],
  left: readonly AccessDevice[],
): string {
  const groups = chosen.map((candidate) => ({
    text: `${candidate.devices.length} ${phrase(candidate)}`,
    devices: candidate.devices,
  }));
  const names = left.map((device) => ({ text: device.name, devices: [device] }));
  const shown = [...groups, ...names].slice(0, NAMES_MAX);
  const said = new Set(shown.flatMap((part) => part.devices.map(({ uid }) => uid)));
  const more = devices.length - said.size;
  return [...shown.map(({ text }) => text), ...(more > 0 ? [`${more} more`] : [])].join(", ");
}
