import {
  type Access,
  type AccessPolicy,
  type AccessRule,
  type AccessSubject,
  ANY_LOGIN,
  type DeviceSet,
  type EvaluatedLogins,
  earlier,
  evaluateAccess,
  type Outcome,
  otherAddressOf,
  type Reason,
  type Share,
  subjectFacts,
} from "@gatehouse-access/sdk/policy";
import { conditionsOfPolicy } from "../access/identityExplanation.ts";
import { instantText, untilText } from "../words.ts";
import { conditionsOf } from "./conditions.ts";
import type { AccessMapData, MapChange, MapDevice, MapEdge, MapKey, MapText } from "./data.ts";

export const addressInWords = (address: string, evaluated: EvaluatedLogins): string =>
  address === otherAddressOf(evaluated) ? "any address that the policy does not mention" : address;

export const loginInWords = (login: string): string =>
  login === ANY_LOGIN ? "any login that the policy does not mention" : login;

/**
 * Returns the edges of a map for all points in time that it shows. Also returns the device sets and texts to which the
 * edges refer.
 */
export function edgesOf(
  before: Access,
  after: Access,
  times: readonly string[],
  keys: readonly MapKey[],
  devices: readonly MapDevice[],
): Pick<AccessMapData, "edges" | "deviceSets" | "texts"> {
  const [deviceSets, texts] = [new Interned<readonly number[]>(), new Interned<MapText>()];
  const accessAt = ({ policy, evaluated, uids }: Access, time: string) =>
    evaluateAccess(policy, evaluated, uids, new Date(time));
  const found = new Map<string, MapEdge & { times: number[] }>();
  for (const [index, time] of times.entries()) {
    const accesses = [accessAt(before, time), accessAt(after, time)] as const;
    for (const edge of edgesAt(...accesses, keys, devices, deviceSets, texts)) {
      const name = JSON.stringify(edge);
      found.set(name, { ...edge, times: [...(found.get(name)?.times ?? []), index] });
    }
  }
  const edges = Array.from(
    found.values(),
    ({ times: own, ...edge }): MapEdge => (own.length === times.length ? edge : { ...edge, times: own }),
  );
  return { edges, deviceSets: deviceSets.items, texts: texts.items };
}

/** Returns the edges at one point in time. Adds the device sets and texts of the edges to the given lists. */
function edgesAt(
  before: Access,
  after: Access,
  keys: readonly MapKey[],
  devices: readonly MapDevice[],
  deviceSets: Interned<readonly number[]>,
  texts: Interned<MapText>,
): MapEdge[] {
  const indexOf = new Map(devices.map(({ uid }, index) => [uid, index]));
  const indexes = after.uids.map((uid) => indexOf.get(uid) ?? -1);
  const compare = comparisonOf(before, after);
  const byId = ({ subjects }: Access) => new Map(subjects.map((one) => [subjectFacts(one).id, one]));
  const [old, now] = [byId(before), byId(after)];
  const { logins, addresses } = after.evaluated;
  return keys.flatMap(({ fingerprint }, key) => {
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
    return merged(parts, after.evaluated).map(
      ({ found: { change, rule, cause, devices, outcome, until }, ...edge }): MapEdge => {
        const because = cause === undefined ? {} : { cause: texts.placeOf(cause) };
        const condition = outcome === "allow" ? {} : { condition: outcome };
        const end = until === undefined ? {} : { until: instantText(until) };
        return { key, devices, ...edge, change, rule: texts.placeOf(rule), ...because, ...condition, ...end };
      },
    );
  });
}

/** A part of an edge: the access of a key with one login name from one address, and the effect of a change on it. */
interface EdgePart {
  readonly found: Omit<ComparedDevices, "places"> & { readonly devices: number };
  readonly login: string;
  readonly address: string;
}

/** Merges parts that differ only in login name or address into one edge. */
function merged(parts: readonly EdgePart[], evaluated: EvaluatedLogins) {
  const ofLogins = Map.groupBy(parts, ({ found, login }) => JSON.stringify([found, login]));
  const withAddresses = [...ofLogins.values()].flatMap(([first, ...more]) =>
    first
      ? [{ ...first, addresses: [first, ...more].map(({ address }) => addressInWords(address, evaluated)) }]
      : [],
  );
  const alike = Map.groupBy(withAddresses, ({ found, addresses }) => JSON.stringify([found, addresses]));
  return [...alike.values()].flatMap(([first, ...more]) => {
    const logins = [first, ...more].flatMap((part) => (part ? loginInWords(part.login) : []));
    return first ? [{ found: first.found, logins, addresses: first.addresses }] : [];
  });
}

/** Compresses indexes to ranges. Each range is its first and last index: `[0, 3, 7, 7]` for 0 to 3, and 7. */
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

/** The devices for which the change, the rule and the cause are the same, for one key, login name and address. */
interface ComparedDevices {
  readonly change: MapChange;
  /** Description of the rule that allows the login. For a lost login, the rule that allowed it before the change. */
  readonly rule: MapText;
  /**
   * Description of the reason why the login is gained or lost. For a kept login, the condition or expiry time before
   * the change. Undefined for an unchanged login.
   */
  readonly cause: MapText | undefined;
  /** The outcome of the login after the change. For a lost login, the outcome before the change. */
  readonly outcome: Exclude<Outcome, "deny">;
  /** The expiry time of the access after the change. For a lost login, the expiry time before the change. */
  readonly until: string | undefined;
  /**
   * Indexes of the devices in the list of device uids, in ascending order. The access before the change and the access
   * after the change have the same list.
   */
  readonly places: readonly number[];
}

/** The access before or after the change (one side of the comparison) for one subject, login name and address. */
interface Side {
  readonly access: Access;
  readonly subject: AccessSubject | undefined;
  readonly present: ReadonlySet<number>;
  readonly admitted: DeviceSet | undefined;
  readonly shares: readonly Share[];
  readonly reach: DeviceSet | undefined;
}

/**
 * Compares the devices that one subject can access with one login name from one address, before and after a change.
 */
type Comparison = (
  was: AccessSubject | undefined,
  is: AccessSubject | undefined,
  login: string,
  address: string,
) => Generator<ComparedDevices>;

/**
 * Returns a function that compares the access before and after a change, with the rule and the cause of each
 * difference.
 * @param accessBefore must have the same list of uids as `accessAfter`
 */
function comparisonOf(accessBefore: Access, accessAfter: Access): Comparison {
  const placeOf = new Map(accessAfter.uids.map((uid, place) => [uid, place]));
  const present = ({ policy }: Access) =>
    new Set(policy.devices.map(({ uid }) => placeOf.get(uid)).filter((place) => place !== undefined));
  const [presentBefore, presentAfter] = [present(accessBefore), present(accessAfter)];
  for (const { decider, subjects } of [accessBefore, accessAfter]) {
    for (const one of decider.policies) policyConditions.set(one, conditionsOfPolicy(one, subjects));
  }
  return function* compare(was, is, login, address) {
    const before = side(accessBefore, was, presentBefore, login, address);
    const after = side(accessAfter, is, presentAfter, login, address);
    for (const part of reached(after)) {
      const { devices } = part;
      const old = before.reach && devices.new_intersection(before.reach);
      if (old && !old.isEmpty()) yield* kept(before, { ...part, devices: old });
      yield* changed("gained", { ...part, devices: without(devices, before.reach) }, (place) =>
        causeOf(place, before, after, CAUSES.gained),
      );
    }
    for (const part of reached(before)) {
      yield* changed("lost", { ...part, devices: without(part.devices, after.reach) }, (place) =>
        causeOf(place, after, before, CAUSES.lost),
      );
    }
  };
}

const without = (devices: DeviceSet, others: DeviceSet | undefined): DeviceSet =>
  others ? devices.new_difference(others) : devices;

function side(
  access: Access,
  subject: AccessSubject | undefined,
  present: ReadonlySet<number>,
  login: string,
  address: string,
): Side {
  const { shares, open } = access.verdict(login, address, subject);
  const admitted = subject && access.admitted(subject, login);
  return { access, subject, present, admitted, shares, reach: admitted?.new_intersection(open) };
}

interface Reached {
  readonly reason: Reason;
  readonly outcome: ComparedDevices["outcome"];
  readonly until: string | undefined;
  readonly devices: DeviceSet;
}

function* reached({ access, subject, admitted, shares }: Side): Generator<Reached> {
  if (!admitted || !subject) return;
  const end = access.endOf(subject);
  for (const { reason, devices } of shares) {
    const outcome = access.outcomeOf(reason.outcome, subject);
    const until = earlier(end, reason.until);
    if (outcome !== "deny") yield { reason, outcome, until, devices: devices.new_intersection(admitted) };
  }
}

/**
 * Yields the access that exists before and after the change. If its condition or expiry time changes on a device, the
 * cause contains the previous condition or expiry time.
 */
function* kept(before: Side, { reason, outcome, until, devices }: Reached): Generator<ComparedDevices> {
  const same = devices.clone();
  const about = { change: "kept", rule: allowedBy(reason), outcome, until } as const;
  for (const old of reached(before)) {
    if (old.outcome === outcome && old.until === until) continue;
    const altered = devices.new_intersection(old.devices);
    if (altered.isEmpty()) continue;
    same.difference(altered);
    const condition = old.outcome === "allow" ? "without a condition" : CONDITION_WORDS[old.outcome];
    const end = old.until === undefined ? "without an end" : untilText(old.until);
    const parts = [old.outcome !== outcome && condition, old.until !== until && end].filter(Boolean);
    const cause = { text: `before the change: ${parts.join(", ")}`, patterns: [] };
    yield { ...about, cause, places: altered.array() };
  }
  if (same.isEmpty()) return;
  yield { ...about, cause: undefined, places: same.array() };
}

/** The conditions of allowed logins, as phrases. */
export const CONDITION_WORDS: AccessMapData["conditions"] = {
  reauthentication: "after a re-authentication",
  approval: "after the approval of an SSH key",
  unknown: "with an SSH key",
};

const CAUSES = {
  gained: {
    rule: "denied it",
    object: "is new",
    type: "the service refuses the type of the key",
    expired: "the key had expired",
    owner: "the owner of the key was not a member",
  },
  lost: {
    rule: "denies it",
    object: "is removed",
    type: "the service refuses the type of the key",
    expired: "the key has expired",
    owner: "the owner of the key is not a member",
  },
} as const;

function* changed(
  change: keyof typeof CAUSES,
  { reason, outcome, until, devices }: Reached,
  causeOf: (place: number) => AccessRule | AccessPolicy | string,
): Generator<ComparedDevices> {
  for (const [found, places] of Map.groupBy(devices.array(), causeOf)) {
    yield {
      change,
      rule: allowedBy(reason),
      outcome,
      until,
      cause: causeInWords(found, CAUSES[change].rule),
      places,
    };
  }
}

function causeInWords(cause: AccessRule | AccessPolicy | string, verb: string): MapText {
  return typeof cause === "string" ? { text: cause, patterns: [] } : objectInWords(cause, "", verb);
}

/**
 * Returns the reason why a login is refused on one side of the change (before or after) and allowed on the other side.
 * The reason is a phrase, or the rule or policy that denies the login.
 */
function causeOf(
  place: number,
  refusing: Side,
  allowing: Side,
  words: (typeof CAUSES)[keyof typeof CAUSES],
): AccessRule | AccessPolicy | string {
  const { access, subject, admitted, present, shares } = refusing;
  const allowed = allowing.subject;
  if (!subject) return `the ${allowed ? subjectFacts(allowed).kind : "key"} ${words.object}`;
  if (!present.has(place)) return `the device ${words.object}`;
  if (!admitted?.has(place)) {
    const lapse = access.lapseOf(subject);
    return lapse ? words[lapse] : access.decider.changedAdmission(subject, allowed ?? subject);
  }
  const { policy, rule } = shares.find(({ devices }) => devices.has(place))?.reason ?? {};
  return policy ?? rule ?? access.decider.defaultDenial ?? words.rule;
}

function allowedBy({ rule, policy }: Reason): MapText {
  const by = policy ?? rule;
  return by ? objectInWords(by, "allowed by ", "") : { text: "allowed, since no rule matches", patterns: [] };
}

const objectInWords = (object: AccessRule | AccessPolicy, before: string, after: string): MapText =>
  "subject" in object ? policyInWords(object, before, after) : ruleInWords(object, before, after);

/** The conditions of the access policies of a map, as text. The names of principals replace their ids. */
const policyConditions = new WeakMap<AccessPolicy, string>();

const policyInWords = (policy: AccessPolicy, before: string, after: string): MapText => ({
  text: `${before}access policy ${policy.name} (${policyConditions.get(policy)}) ${after}`.trim(),
  patterns: [],
});

/** The conditions of the rules, as text. This cache saves time, since most rules apply to logins of many keys. */
const conditions = new WeakMap<AccessRule, MapText>();

function ruleInWords(rule: AccessRule, before: string, after: string): MapText {
  const { text, patterns } = conditions.get(rule) ?? conditionsOf(rule);
  conditions.set(rule, { text, patterns });
  const { id, action, priority } = rule;
  const words = `${before}rule ${id} (${action}; priority ${priority}; ${text}) ${after}`;
  return { text: words.trim(), patterns };
}
