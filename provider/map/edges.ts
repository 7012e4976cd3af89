import type { Access, AccessKey, AccessRule, DeviceSet } from "@gatehouse-access/sdk/policy";
import type { MapChange, MapEdge } from "./data.ts";

/** Devices on which a change means the same for one key, login name and address. */
interface ComparedDevices {
  readonly change: MapChange;
  /** What allows the login, in words; where it is lost, what allowed it. */
  readonly rule: string;
  /** Why it is gained or lost, in words; undefined where it is neither. */
  readonly cause: string | undefined;
  /** Places in the list of uids of both accesses, rising. */
  readonly places: readonly number[];
}

/** What one of the two policies says to a key, with one login name and from one address. */
interface Side {
  readonly key: AccessKey | undefined;
  readonly present: ReadonlySet<number>;
  readonly admitted: DeviceSet | undefined;
  readonly shares: readonly { readonly rule: AccessRule | null; readonly devices: DeviceSet }[];
  readonly reach: DeviceSet | undefined;
}

/** The devices that either policy allows a key, with one login name and from one address. */
type Comparison = (
  was: AccessKey | undefined,
  is: AccessKey | undefined,
  login: string,
  address: string,
) => Generator<ComparedDevices>;

/**
 * Compares who can reach what by two policies, login by login, with the rule that decides and the cause.
 * @param accessBefore and `accessAfter` must have the same list of uids
 */
export function comparisonOf(accessBefore: Access, accessAfter: Access): Comparison {
  const placeOf = new Map(accessAfter.uids.map((uid, place) => [uid, place]));
  const present = ({ policy }: Access) =>
    new Set(policy.devices.map(({ uid }) => placeOf.get(uid)).filter((place) => place !== undefined));
  const [presentBefore, presentAfter] = [present(accessBefore), present(accessAfter)];
  return function* compare(was, is, login, address) {
    const before = side(accessBefore, was, presentBefore, login, address);
    const after = side(accessAfter, is, presentAfter, login, address);
    for (const { rule, devices } of reached(after)) {
      const old = before.reach && devices.new_intersection(before.reach);
      if (old && !old.isEmpty())
        yield { change: "kept", rule: allowedBy(rule), cause: undefined, places: old.array() };
      yield* changed("gained", rule, before.reach ? devices.new_difference(before.reach) : devices, (place) =>
        difference(place, before, after, { by: "denied it", key: "the key is new", device: "is new" }),
      );
    }
    for (const { rule, devices } of reached(before)) {
      yield* changed("lost", rule, after.reach ? devices.new_difference(after.reach) : devices, (place) =>
        difference(place, after, before, {
          by: "denies it",
          key: "the key is removed",
          device: "is removed",
        }),
      );
    }
  };
}

function side(
  access: Access,
  key: AccessKey | undefined,
  present: ReadonlySet<number>,
  login: string,
  address: string,
): Side {
  const { shares, open } = access.verdict(login, address);
  const admitted = key && access.admitted(key, login);
  return { key, present, admitted, shares, reach: admitted?.new_intersection(open) };
}

function* reached({ admitted, shares }: Side): Generator<{ rule: AccessRule | null; devices: DeviceSet }> {
  if (!admitted) return;
  for (const { rule, devices } of shares) {
    if (rule?.action !== "deny") yield { rule, devices: devices.new_intersection(admitted) };
  }
}

function* changed(
  change: "gained" | "lost",
  rule: AccessRule | null,
  devices: DeviceSet,
  causeOf: (place: number) => string,
): Generator<ComparedDevices> {
  for (const [cause, places] of Map.groupBy(devices.array(), causeOf)) {
    yield { change, rule: allowedBy(rule), cause, places };
  }
}

function difference(
  place: number,
  refusing: Side,
  allowing: Side,
  words: { readonly by: string; readonly key: string; readonly device: string },
): string {
  if (!refusing.key) return words.key;
  if (!refusing.present.has(place)) return `the device ${words.device}`;
  if (!refusing.admitted?.has(place)) {
    return sameKey(refusing.key, allowing.key)
      ? "the device's name or tags change"
      : "the key's logins or devices change";
  }
  const rule = refusing.shares.find(({ devices }) => devices.has(place))?.rule;
  return rule ? `${ruleInWords(rule)} ${words.by}` : words.by;
}

const sameKey = (left: AccessKey, right: AccessKey | undefined): boolean =>
  left.username === right?.username && JSON.stringify(left.filter) === JSON.stringify(right.filter);

const allowedBy = (rule: AccessRule | null): string =>
  rule === null ? "allowed, as no rule matches" : `allowed by ${ruleInWords(rule)}`;

function ruleInWords({ id, action, priority, username, sourceIp, filter }: AccessRule): string {
  const asks = [
    username === "" ? [] : [`login ${username}`],
    sourceIp === "" ? [] : [`from ${sourceIp}`],
    filter.hostname ? [`name ${filter.hostname}`] : [],
    filter.tags && filter.tags.length > 0 && !filter.hostname ? [`tags ${filter.tags.join(", ")}`] : [],
  ].flat();
  return `rule ${id} (${[action, `priority ${priority}`, ...asks].join("; ")})`;
}

interface Part {
  readonly compared: ComparedDevices;
  readonly devices: number;
  readonly logins: string[];
  readonly addresses: string[];
}

/** Collects compared devices into few edges: those that differ in login name or address alone become one edge. */
export class EdgeList {
  readonly edges: MapEdge[] = [];
  readonly deviceSets: number[][] = [];
  readonly texts: string[] = [];
  /** The place on the map of each device in the list of uids. */
  readonly #indexes: readonly number[];
  readonly #setPlaces = new Map<string, number>();
  readonly #textPlaces = new Map<string, number>();
  readonly #parts = new Map<string, Part>();

  constructor(indexes: readonly number[]) {
    this.#indexes = indexes;
  }

  add(compared: ComparedDevices, login: string, address: string): void {
    if (compared.places.length === 0) return;
    const devices = this.#set(compared.places);
    const name = partName({ compared, devices }, [login]);
    const part = this.#parts.get(name);
    if (part) part.addresses.push(address);
    else this.#parts.set(name, { compared, devices, logins: [login], addresses: [address] });
  }

  endKey(key: number): void {
    const merged = Map.groupBy(this.#parts.values(), (part) => partName(part, part.addresses));
    for (const parts of merged.values()) {
      const [first] = parts;
      if (!first) continue;
      const { compared, devices, addresses } = first;
      const cause = compared.cause === undefined ? {} : { cause: this.#text(compared.cause) };
      this.edges.push({
        key,
        devices,
        logins: parts.flatMap(({ logins }) => logins),
        addresses,
        change: compared.change,
        rule: this.#text(compared.rule),
        ...cause,
      });
    }
    this.#parts.clear();
  }

  #text(text: string): number {
    return interned(this.#textPlaces, this.texts, text, text);
  }

  #set(places: readonly number[]): number {
    const runs: number[] = [];
    for (const index of places.map((place) => this.#indexes[place] ?? -1).sort((a, b) => a - b)) {
      if (runs.at(-1) === index - 1) runs[runs.length - 1] = index;
      else runs.push(index, index);
    }
    return interned(this.#setPlaces, this.deviceSets, runs.join(), runs);
  }
}

const partName = (
  { compared, devices }: Pick<Part, "compared" | "devices">,
  more: readonly string[],
): string => JSON.stringify([compared.change, compared.rule, compared.cause, devices, more]);

function interned<T>(places: Map<string, number>, all: T[], name: string, value: T): number {
  const known = places.get(name);
  if (known !== undefined) return known;
  places.set(name, all.length);
  return all.push(value) - 1;
}
