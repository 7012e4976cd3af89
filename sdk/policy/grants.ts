import { subjectPairs } from "./access.ts";
import type { Access, Reason, Verdict } from "./decider.ts";
import type { EvaluatedLogins } from "./decisions.ts";
import { type DeviceSet, unionOf } from "./deviceSets.ts";
import { earlier } from "./expiry.ts";
import type { Outcome } from "./identity.ts";
import type { AccessSubject } from "./namespacePolicy.ts";

/** The logins that one rule or access policy allows for one subject and one login name. */
export interface Grant extends Pick<Reason, "rule" | "policy"> {
  readonly subject: AccessSubject;
  readonly login: string;
  /** The evaluated addresses from which the logins are allowed. */
  readonly addresses: readonly string[];
  /** The outcome of the logins. It is never `deny`. */
  readonly outcome: Outcome;
  /** The expiry time of the access, in RFC 3339. Undefined if the access does not expire. */
  readonly until?: string | undefined;
  /** Uids of the devices, in the order of {@link Access.uids}. */
  readonly devices: readonly string[];
}

/**
 * Yields all logins that a policy allows for the evaluated login names and addresses, grouped by subject. Addresses
 * with the same access share one grant.
 * @param subjects default: all subjects of the policy
 */
export function* grantsOf(access: Access, subjects = access.subjects): Generator<Grant> {
  const { logins } = access.evaluated;
  const byGroup = new Map<object, readonly (readonly [login: string, shares: Group<Reason>[]])[]>();
  for (const subject of subjects) {
    const group = access.groupOf(subject);
    const allowed =
      byGroup.get(group) ?? logins.map((login) => [login, allowedTo(access, login, subject)] as const);
    byGroup.set(group, allowed);
    const end = access.endOf(subject);
    for (const [login, shares] of allowed) {
      const admitted = access.admitted(subject, login);
      if (!admitted || admitted.isEmpty()) continue;
      const groups = new Groups<Reason>();
      for (const { label: reason, devices, addresses } of shares) {
        if (admitted.intersects(devices)) groups.add(reason, admitted.new_intersection(devices), addresses);
      }
      for (const { label: reason, devices, addresses } of groups.in(access.evaluated)) {
        const { rule, policy } = reason;
        const outcome = access.outcomeOf(reason.outcome, subject);
        const until = earlier(end, reason.until);
        yield { subject, login, addresses, rule, policy, outcome, until, devices: access.uidsOf(devices) };
      }
    }
  }
}

function allowedTo(access: Access, login: string, subject: AccessSubject): Group<Reason>[] {
  const groups = new Groups<Reason>();
  const alike = Map.groupBy(access.evaluated.addresses, (address) => access.verdict(login, address, subject));
  for (const [{ shares }, addresses] of alike) {
    for (const { reason, devices } of shares) {
      if (reason.outcome !== "deny") groups.add(reason, devices, addresses);
    }
  }
  return [...groups.in(access.evaluated)];
}

/** A change to access: the devices on which the logins of one subject with one login name change. */
export interface AccessChange {
  /** The subject after the change. If the change deletes the subject, this is the subject before the change. */
  readonly subject: AccessSubject;
  /**
   * The subject with the same SSH key before a change to the access mode: the public key of a principal, or the
   * principal of a public key. Undefined if the mode does not change. Also undefined if the SSH key has a subject in
   * only one of the modes.
   */
  readonly previous?: AccessSubject | undefined;
  readonly login: string;
  readonly addresses: readonly string[];
  /**
   * The kind of change: `gained`, `lost` or `altered`. `altered`: the logins are allowed before and after the change,
   * but with a different outcome or expiry time.
   */
  readonly change: "gained" | "lost" | "altered";
  /** The outcome of the logins before the change. `deny` for gained access. */
  readonly before: Outcome;
  /** The outcome of the logins after the change. `deny` for lost access. */
  readonly after: Outcome;
  /**
   * The expiry time of the access before the change. Undefined if the access did not expire, and for gained access.
   */
  readonly untilBefore: string | undefined;
  /** The expiry time of the access after the change. Undefined if the access does not expire, and for lost access. */
  readonly until: string | undefined;
  /** Uids of the devices, in the order of {@link Access.uids}. */
  readonly devices: readonly string[];
}

/**
 * Yields the effect of a policy change: the logins for which the outcome or the expiry time differs between the two
 * policies. If the access mode changes, compares the logins that use the same SSH key.
 * @param before the access before the change, with the same evaluated logins and the same list of uids as `after`
 */
export function* accessChanges(before: Access, after: Access): Generator<AccessChange> {
  const alikeTo = alikeToBoth(before, after);
  const isSwitch = before.decider.mode !== after.decider.mode;
  for (const { was, is } of subjectPairs(before.policy, after.policy, after.time)) {
    const subject = is ?? was;
    if (!subject) continue;
    const subjects = isSwitch && was && is ? { subject, previous: was } : { subject };
    const [sideBefore, sideAfter] = [was && sideOf(before, was), is && sideOf(after, is)];
    const hasOneOutcome = areAlike(sideBefore, sideAfter);
    for (const [login, places] of alikeTo(was, is)) {
      const admittedBefore = was && before.admitted(was, login);
      const admittedAfter = is && after.admitted(is, login);
      if (!admittedBefore && !admittedAfter) continue;
      const groups = new Groups<`${Label} ${Label}`>();
      const sameDevices = hasOneOutcome && admittedAfter && admittedBefore?.equals(admittedAfter);
      for (const { verdictBefore, verdictAfter, changed, addresses } of places) {
        const endings = verdictBefore.endings.length + verdictAfter.endings.length;
        const isSame = sameDevices && endings === 0;
        if (isSame && !changed.intersects(admittedAfter)) continue;
        const reachBefore = reachOf(sideBefore, admittedBefore, verdictBefore);
        const reachAfter = reachOf(sideAfter, admittedAfter, verdictAfter);
        for (const [to, devices] of reachAfter.parts)
          groups.add(`${DENIED} ${to}`, without(devices, reachBefore.all), addresses);
        for (const [from, devices] of reachBefore.parts) {
          groups.add(`${from} ${DENIED}`, without(devices, reachAfter.all), addresses);
          for (const [to, others] of reachAfter.parts) {
            if (from !== to) groups.add(`${from} ${to}`, devices.new_intersection(others), addresses);
          }
        }
      }
      for (const { label, devices, addresses } of groups.in(after.evaluated)) {
        const [from, endBefore, to, end] = label.split(" ") as [Outcome, string, Outcome, string];
        const change = from === "deny" ? "gained" : to === "deny" ? "lost" : "altered";
        const ends = { untilBefore: endBefore || undefined, until: end || undefined };
        const about = { ...subjects, login, addresses, change, before: from, after: to, ...ends } as const;
        yield { ...about, devices: after.uidsOf(devices) };
      }
    }
  }
}

/**
 * A group of addresses on which the policy change has the same effect. For one login name, all addresses of the group
 * have the same decisions before the change, and the same decisions after the change.
 */
interface AlikeAddresses {
  readonly verdictBefore: Verdict;
  readonly verdictAfter: Verdict;
  /** Devices on which logins are allowed either before or after the change, but not both. */
  readonly changed: DeviceSet;
  readonly addresses: readonly string[];
}

type AlikeByLogin = readonly (readonly [login: string, places: readonly AlikeAddresses[]])[];

/** Returns a function that groups the evaluated addresses for each login name. The results are cached. */
function alikeToBoth(before: Access, after: Access) {
  const known = new Map<object, Map<object, AlikeByLogin>>();
  const { logins, addresses } = after.evaluated;
  const places = new Map(addresses.map((address, place) => [address, place]));
  const firstOf = (group: AlikeAddresses) => places.get(group.addresses[0] ?? "") ?? 0;
  return (was: AccessSubject | undefined, is: AccessSubject | undefined): AlikeByLogin => {
    const [old, now] = [before.groupOf(was), after.groupOf(is)];
    const byAfter = known.get(old) ?? new Map<object, AlikeByLogin>();
    known.set(old, byAfter);
    const alike = byAfter.get(now) ?? logins.map((login) => [login, alikeFor(login, was, is)] as const);
    byAfter.set(now, alike);
    return alike;
  };

  function alikeFor(login: string, was: AccessSubject | undefined, is: AccessSubject | undefined) {
    const byBefore = Map.groupBy(addresses, (address) => before.verdict(login, address, was));
    const pairs = [...byBefore].flatMap(([verdictBefore, some]) => {
      const byAfter = Map.groupBy(some, (address) => after.verdict(login, address, is));
      return [...byAfter].map(([verdictAfter, addresses]) => {
        const changed = verdictBefore.open.new_change(verdictAfter.open);
        return { verdictBefore, verdictAfter, changed, addresses };
      });
    });
    return pairs.sort((left, right) => firstOf(left) - firstOf(right));
  }
}

/**
 * A label of allowed logins: their outcome, and the expiry time of the access. The time is an empty string for access
 * that does not expire.
 */
type Label = `${Outcome} ${string}`;

const labelOf = (outcome: Outcome, until: string | undefined): Label => `${outcome} ${until ?? ""}`;

const DENIED = labelOf("deny", undefined);

/**
 * The devices on which the logins of a subject are allowed: all of them, and the devices for each outcome and expiry
 * time.
 */
interface Reach {
  readonly all: DeviceSet | undefined;
  readonly parts: readonly (readonly [Label, DeviceSet])[];
}

const NOTHING: Reach = { all: undefined, parts: [] };

/** The access of a subject before or after a change. */
interface Side {
  /** The time when the access expires, regardless of the rules. */
  readonly end: string | undefined;
  /** The label of direct logins. */
  readonly direct: Label;
  /** The label of logins that wait for a re-authentication. */
  readonly held: Label;
}

function sideOf(access: Access, subject: AccessSubject): Side {
  const end = access.endOf(subject);
  const direct = labelOf(access.outcomeOf("allow", subject), end);
  const held = labelOf(access.outcomeOf("reauthentication", subject), end);
  return { end, direct, held };
}

/** Returns true if all allowed logins have the same label before and after a change. */
const areAlike = (before: Side | undefined, after: Side | undefined): boolean =>
  before?.direct === before?.held && before?.held === after?.direct && after?.direct === after?.held;

function reachOf(
  side: Side | undefined,
  admitted: DeviceSet | undefined,
  { open, held, endings }: Verdict,
): Reach {
  if (!side || !admitted) return NOTHING;
  const all = admitted.new_intersection(open);
  if (side.held !== side.direct) {
    const free = [side.direct, all.new_difference(held)] as const;
    return { all, parts: [free, [side.held, all.new_intersection(held)]] };
  }
  if (endings.length === 0) return { all, parts: [[side.direct, all]] };
  const lasting = endings.reduce((left, { devices }) => left.new_difference(devices), all);
  const parts = new Map([[side.direct, lasting]]);
  for (const { reason, devices } of endings) {
    const label = labelOf("allow", earlier(side.end, reason.until));
    parts.set(label, unionOf([parts.get(label), all.new_intersection(devices)]));
  }
  return { all, parts: [...parts] };
}

const without = (devices: DeviceSet, others: DeviceSet | undefined): DeviceSet =>
  others ? devices.new_difference(others) : devices;

interface Group<Label> {
  readonly label: Label;
  readonly devices: DeviceSet;
  readonly addresses: readonly string[];
}

interface OpenGroup<Label> extends Omit<Group<Label>, "addresses"> {
  readonly parts: (readonly string[])[];
}

/** Groups addresses for which the devices and the label are the same. */
class Groups<Label> {
  readonly #all: OpenGroup<Label>[] = [];
  readonly #byLabel = new Map<Label, OpenGroup<Label>[]>();

  add(label: Label, devices: DeviceSet | undefined, addresses: readonly string[]): void {
    if (!devices || devices.isEmpty()) return;
    const alike = this.#byLabel.get(label) ?? [];
    const same = alike.find((group) => group.devices.equals(devices));
    if (same) {
      same.parts.push(addresses);
      return;
    }
    const group = { label, devices, parts: [addresses] };
    this.#all.push(group);
    alike.push(group);
    this.#byLabel.set(label, alike);
  }

  /** Returns the groups. The addresses of a group are in the order of the evaluated addresses. */
  *in(evaluated: EvaluatedLogins): Generator<Group<Label>> {
    for (const { label, devices, parts } of this.#all) {
      yield { label, devices, addresses: inOrder(parts, evaluated.addresses) };
    }
  }
}

function inOrder(parts: readonly (readonly string[])[], all: readonly string[]): readonly string[] {
  if (parts.length === 1) return parts[0] ?? [];
  const wanted = new Set(parts.flat());
  return all.filter((address) => wanted.has(address));
}
