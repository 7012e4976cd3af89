import {
  type Access,
  type AccessChange,
  accessChanges,
  evaluateAccess,
  isLaterEnd,
  subjectFacts,
} from "@gatehouse-access/sdk/policy";
import { hasPassed } from "@gatehouse-access/sdk/times";
import { counted } from "../words.ts";
import { linesOf, type ReviewedAccess } from "./accessLines.ts";

/**
 * Maximum number of points in time at which access is evaluated. The namespace is evaluated twice for each point in
 * time.
 */
const TIMES_MAX = 20;

/** The access that a change gives, removes or alters. */
export interface AccessEffect {
  /** The lines about access that changes immediately, followed by the lines about access that starts later. */
  readonly lines: readonly ReviewedAccess[];
  /** A note on the points in time beyond the limit, as a sentence. Empty if all points in time were evaluated. */
  readonly notEvaluated: readonly string[];
}

/**
 * Returns the access that a change gives, removes or alters immediately. Also returns the access that the change gives
 * or prolongs later, when a deny rule expires. The lines about later access omit access that the change gives
 * immediately.
 * @param before access before the change
 * @param after access after the change, with the same evaluated login names, addresses and uids as `before`
 */
export function accessEffect(before: Access, after: Access): AccessEffect {
  const changes = Array.from(accessChanges(before, after));
  const times = endsOfDenials(after);
  const reported = new ReportedGains();
  reported.add(changes);
  const later = times.slice(0, TIMES_MAX).flatMap((time) => {
    const [old, now] = [before, after].map((access) => at(access, new Date(time))) as [Access, Access];
    const gained = reported.newIn(accessChanges(old, now), now);
    reported.add(gained);
    return linesOf(gained, old, now).map((line) => ({ ...line, starts: time }));
  });
  const skipped = times.length - TIMES_MAX;
  const ends = counted(skipped, "further end of a rule that denies", "further ends of rules that deny");
  const notEvaluated = `the access after ${ends} was not evaluated: the limit is ${TIMES_MAX}`;
  return {
    lines: [...linesOf(changes, before, after), ...later],
    notEvaluated: skipped > 0 ? [notEvaluated] : [],
  };
}

/** Returns the sorted expiry times of deny rules. The expiry of other objects gives no access. */
function endsOfDenials({ rules }: Access): string[] {
  const ends = rules.flatMap(({ action, expiresAt }) =>
    action === "deny" && expiresAt !== undefined ? [expiresAt] : [],
  );
  return [...new Set(ends)].sort((left, right) => Date.parse(left) - Date.parse(right));
}

const at = ({ policy, evaluated, uids }: Access, time: Date): Access =>
  evaluateAccess(policy, evaluated, uids, time);

/**
 * The gained or prolonged logins of one subject with one login name. The logins come from each of the addresses and go
 * to each of the devices.
 */
interface Gain {
  readonly addresses: ReadonlySet<string>;
  readonly devices: readonly string[];
  /** The expiry time of the access, in RFC 3339. Undefined if the access does not expire. */
  readonly until: string | undefined;
}

/** The gained or prolonged logins that a report already contains. */
export class ReportedGains {
  readonly #all = new Map<string, Gain[]>();
  readonly #sets = new DeviceLists();

  add(changes: Iterable<AccessChange>): void {
    for (const change of changes) {
      if (!givesAccess(change)) continue;
      const name = nameOf(change);
      const { until, devices } = change;
      const gain = { addresses: new Set(change.addresses), devices, until };
      const known = this.#all.get(name);
      if (known) known.push(gain);
      else this.#all.set(name, [gain]);
    }
  }

  /**
   * Returns the gained logins in the changes, without the logins that the report already contains. A login in the
   * report counts as new if its reported access has expired at the time of the changes.
   * @param access the access after the changes
   */
  newIn(changes: Iterable<AccessChange>, { time }: Pick<Access, "time">): AccessChange[] {
    return Array.from(changes).flatMap((change): AccessChange[] => {
      if (!givesAccess(change)) return [];
      const known = (this.#all.get(nameOf(change)) ?? []).filter(
        ({ until }) => until === undefined || !hasPassed(until, time),
      );
      return known.length === 0 ? [change] : this.#without(known, change);
    });
  }

  /**
   * Returns the part of a change that the known gains do not contain. Addresses with the same remaining devices share
   * one change.
   */
  #without(known: readonly Gain[], change: AccessChange): AccessChange[] {
    const byGains = Map.groupBy(change.addresses, (address) =>
      known.flatMap(({ addresses }, index) => (addresses.has(address) ? [index] : [])).join(" "),
    );
    const left: { devices: readonly string[]; addresses: Set<string> }[] = [];
    for (const [names, addresses] of byGains) {
      const indexes = new Set(names.split(" "));
      const gains = known.filter((_, index) => indexes.has(String(index)));
      const sets = gains.map((gain) => this.#sets.setOf(gain.devices));
      const devices = change.devices.filter((uid) => !sets.some((set) => set.has(uid)));
      if (devices.length === 0) continue;
      const same = left.find((one) => areEqual(one.devices, devices));
      if (same) for (const address of addresses) same.addresses.add(address);
      else left.push({ devices, addresses: new Set(addresses) });
    }
    return left.map(({ devices, addresses }) => ({
      ...change,
      devices,
      addresses: change.addresses.filter((address) => addresses.has(address)),
    }));
  }
}

/**
 * Converts lists of devices to sets. Equal lists share one set, since many subjects gain access to the same devices.
 */
class DeviceLists {
  readonly #known = new Map<
    string,
    { readonly list: readonly string[]; readonly set: ReadonlySet<string> }[]
  >();

  setOf(list: readonly string[]): ReadonlySet<string> {
    const id = `${list.length} ${list[0]} ${list.at(-1)}`;
    const alike = this.#known.get(id) ?? [];
    const same = alike.find((one) => areEqual(one.list, list));
    if (same) return same.set;
    const set = new Set(list);
    this.#known.set(id, [...alike, { list, set }]);
    return set;
  }
}

const areEqual = (left: readonly string[], right: readonly string[]): boolean =>
  left === right || (left.length === right.length && left.every((one, index) => one === right[index]));

/** Returns true if a change gives access or prolongs it. */
export const givesAccess = ({ change, until, untilBefore }: AccessChange): boolean =>
  change === "gained" || (change === "altered" && isLaterEnd(untilBefore, until));

const nameOf = ({ subject, previous, login }: AccessChange): string =>
  JSON.stringify([subjectFacts(subject).id, previous && subjectFacts(previous).id, login]);
