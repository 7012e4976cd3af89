import {
  type Access,
  type AccessKey,
  type AccessRule,
  ANY_ADDRESS,
  ANY_LOGIN,
  type DeviceSet,
} from "@gatehouse-access/sdk/policy";
import { conditionsOf } from "./conditions.ts";
import type { AccessMapData, MapChange, MapDevice, MapEdge, MapKey, MapText } from "./data.ts";

export const addressInWords = (address: string): string =>
  address === ANY_ADDRESS ? "any address that no rule mentions" : address;

export const loginInWords = (login: string): string =>
  login === ANY_LOGIN ? "any login that no pattern mentions" : login;

/** Returns the edges of a map, with the device sets and texts that they refer to. */
export function edgesOf(
  before: Access,
  after: Access,
  keys: readonly MapKey[],
  devices: readonly MapDevice[],
): Pick<AccessMapData, "edges" | "deviceSets" | "texts"> {
  const [deviceSets, texts] = [new Interned<readonly number[]>(), new Interned<MapText>()];
  const indexOf = new Map(devices.map(({ uid }, index) => [uid, index]));
  const indexes = after.uids.map((uid) => indexOf.get(uid) ?? -1);
  const compare = comparisonOf(before, after);
  const byFingerprint = (all: readonly AccessKey[]) => new Map(all.map((key) => [key.fingerprint, key]));
  const [old, now] = [byFingerprint(before.policy.keys), byFingerprint(after.policy.keys)];
  const { logins, addresses } = after.evaluated;
  const edges = keys.flatMap(({ fingerprint }, key) => {
    const [was, is] = [old.get(fingerprint), now.get(fingerprint)];
    const parts: EdgePart[] = [];
    for (const login of logins) {
      for (const address of addresses) {
        for (const { places, ...found } of compare(was, is, login, address)) {
          if (places.length === 0) continue;
          const set = deviceSets.placeOf(runsOf(places.map((place) => indexes[place] ?? -1)));
          parts.push({ found: { ...found, devices: set }, login, address });
        }
      }
    }
    return merged(parts).map(({ found: { change, rule, cause, devices }, ...edge }): MapEdge => {
      const because = cause === undefined ? {} : { cause: texts.placeOf(cause) };
      return { key, devices, ...edge, change, rule: texts.placeOf(rule), ...because };
    });
  });
  return { edges, deviceSets: deviceSets.items, texts: texts.items };
}

/** The access of a key with one login name from one address that a change gives, removes or keeps. */
interface EdgePart {
  readonly found: Omit<ComparedDevices, "places"> & { readonly devices: number };
  readonly login: string;
  readonly address: string;
}

/** Merges edge parts that differ only in login name or address into edges. */
function merged(parts: readonly EdgePart[]) {
  const ofLogins = Map.groupBy(parts, ({ found, login }) => JSON.stringify([found, login]));
  const withAddresses = [...ofLogins.values()].flatMap(([first, ...more]) =>
    first ? [{ ...first, addresses: [first, ...more].map(({ address }) => addressInWords(address)) }] : [],
  );
  const alike = Map.groupBy(withAddresses, ({ found, addresses }) => JSON.stringify([found, addresses]));
  return [...alike.values()].flatMap(([first, ...more]) => {
    const logins = [first, ...more].flatMap((part) => (part ? loginInWords(part.login) : []));
    return first ? [{ found: first.found, logins, addresses: first.addresses }] : [];
  });
}

/** Compresses indexes to ranges, each as first and last index: `[0, 3, 7, 7]` for 0 to 3, and 7. */
function runsOf(indexes: number[]): readonly number[] {
  const runs: number[] = [];
  for (const index of indexes.sort((left, right) => left - right)) {
    if (runs.at(-1) === index - 1) runs[runs.length - 1] = index;
    else runs.push(index, index);
  }
  return runs;
}

/** A list without duplicates. Callers refer to an item by its index. */
class Interned<T> {
  readonly items: T[] = [];
  readonly #places = new Map<string, number>();

  placeOf(item: T): number {
    const name = JSON.stringify(item);
    const place = this.#places.get(name) ?? this.items.push(item) - 1;
    this.#places.set(name, place);
    return place;
  }
}

/** Devices with the same change, rule and cause for one key, login name and address. */
interface ComparedDevices {
  readonly change: MapChange;
  /** Description of the rule that allows the login. For a lost login: the rule that allowed it before the change. */
  readonly rule: MapText;
  /** Description of the reason why the login is gained or lost; undefined if the login is kept. */
  readonly cause: MapText | undefined;
  /** Indexes of the devices in the list of uids of both accesses, in ascending order. */
  readonly places: readonly number[];
}

/** The decisions of one policy, before or after the change, about one key, login name and address. */
interface Side {
  readonly key: AccessKey | undefined;
  readonly present: ReadonlySet<number>;
  readonly admitted: DeviceSet | undefined;
  readonly shares: readonly { readonly rule: AccessRule | null; readonly devices: DeviceSet }[];
  readonly reach: DeviceSet | undefined;
}

/** Compares the devices that the policies before and after a change allow for one key, login name and address. */
type Comparison = (
  was: AccessKey | undefined,
  is: AccessKey | undefined,
  login: string,
  address: string,
) => Generator<ComparedDevices>;

/**
 * Returns a function that compares the access of two policies for one login, with the deciding rule and the cause.
 * @param accessBefore must have the same list of uids as `accessAfter`
 */
function comparisonOf(accessBefore: Access, accessAfter: Access): Comparison {
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
        causeOf(place, before, after, CAUSES.gained),
      );
    }
    for (const { rule, devices } of reached(before)) {
      yield* changed("lost", rule, after.reach ? devices.new_difference(after.reach) : devices, (place) =>
        causeOf(place, after, before, CAUSES.lost),
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

const CAUSES = {
  gained: { rule: "denied it", key: "the key is new", device: "the device is new" },
  lost: { rule: "denies it", key: "the key is removed", device: "the device is removed" },
} as const;

function* changed(
  change: keyof typeof CAUSES,
  rule: AccessRule | null,
  devices: DeviceSet,
  causeOf: (place: number) => AccessRule | string,
): Generator<ComparedDevices> {
  for (const [found, places] of Map.groupBy(devices.array(), causeOf)) {
    const cause =
      typeof found === "string" ? { text: found, patterns: [] } : ruleInWords(found, "", CAUSES[change].rule);
    yield { change, rule: allowedBy(rule), cause, places };
  }
}

/** Returns the cause why one side refuses access that the other side allows: a phrase, or the rule that denies. */
function causeOf(
  place: number,
  refusing: Side,
  allowing: Side,
  words: (typeof CAUSES)[keyof typeof CAUSES],
): AccessRule | string {
  if (!refusing.key) return words.key;
  if (!refusing.present.has(place)) return words.device;
  if (!refusing.admitted?.has(place)) {
    return sameKey(refusing.key, allowing.key)
      ? "the device's name or tags change"
      : "the key's logins or devices change";
  }
  return refusing.shares.find(({ devices }) => devices.has(place))?.rule ?? words.rule;
}

const sameKey = (left: AccessKey, right: AccessKey | undefined): boolean =>
  left.username === right?.username && JSON.stringify(left.filter) === JSON.stringify(right.filter);

const allowedBy = (rule: AccessRule | null): MapText =>
  rule === null
    ? { text: "allowed, since no rule matches", patterns: [] }
    : ruleInWords(rule, "allowed by ", "");

/** The conditions of the rules. Reading a pattern takes time, and most rules decide for many keys. */
const conditions = new WeakMap<AccessRule, MapText>();

function ruleInWords(rule: AccessRule, before: string, after: string): MapText {
  const { text, patterns } = conditions.get(rule) ?? conditionsOf(rule);
  conditions.set(rule, { text, patterns });
  const { id, action, priority } = rule;
  const words = `${before}rule ${id} (${action}; priority ${priority}; ${text}) ${after}`;
  return { text: words.trim(), patterns };
}
