import {
  type AccessChange,
  type AccessMode,
  accessChanges,
  accessModeOf,
  type NamespacePolicy,
  subjectFacts,
} from "@gatehouse-access/sdk/policy";
import type { LiveObject } from "../model/object.ts";
import { isAboveObserver, roleText } from "../model/roles.ts";
import { idWithin } from "../model/values.ts";
import type { NamespaceState } from "../namespace/namespaceState.ts";
import { kindNamed, kindOf } from "../resources/index.ts";
import { PLAIN } from "../style.ts";
import { counted } from "../words.ts";
import { givesAccess, ReportedGains } from "./accessEffect.ts";
import { accessSentence, firstSentences, linesOf, sentencesByKey } from "./accessLines.ts";
import { comparable, type Privileges } from "./privileges.ts";

/**
 * Maximum number of unmanaged objects, other than keys, for which access is evaluated. The namespace is evaluated again
 * for each of these objects.
 */
const OTHERS_MAX = 20;

/**
 * Returns true if an object can authorize logins in the current access mode of a namespace, or if it is a part of such
 * an object.
 */
export const decidesAboutLogins = (object: LiveObject, policy: NamespacePolicy): boolean =>
  decidesIn(accessModeOf(policy), object, policy);

function decidesIn(mode: AccessMode, object: LiveObject, policy: NamespacePolicy): boolean {
  const { definition, decides, parts } = kindOf(object);
  const deciding = decides ?? (parts && kindNamed(parts.whole.name).decides);
  if (!deciding) return false;
  const isActive = definition.actsIn === undefined || definition.actsIn === mode;
  return isActive && (deciding.isDeciding?.(object, policy) ?? true);
}

/** The access and the other privileges that unmanaged objects give. */
export interface Widening {
  /** The privileges of each object, as sentences without their subject. Empty if the object gives no privileges. */
  readonly of: ReadonlyMap<LiveObject, readonly string[]>;
  /** Notes on the objects or the access that could not be evaluated, as sentences. */
  readonly notEvaluated: readonly string[];
}

/**
 * Returns the privileges that unmanaged objects give: their roles above `observer`, and the access that the namespace
 * would lose without them. If several objects give the same access, the namespace would lose it only without all of
 * them. In this case, the access is reported for each object that is sufficient to give it. An object without an
 * exception in access.ignore is called open. The access of an object with an exception never hides the same access of
 * an open object.
 * @param isExcepted returns true for an object with an exception; these objects are evaluated last
 */
export function wideningOf(
  state: NamespaceState,
  unmanaged: readonly LiveObject[],
  isExcepted: (object: LiveObject) => boolean,
): Widening {
  const widening = new Map<LiveObject, readonly string[]>(
    unmanaged.map((object) => [object, privilegesBesideLogins(object)]),
  );
  if (state.accessUnknown !== undefined) return { of: widening, notEvaluated: [] };
  const add = (object: LiveObject, sentences: readonly string[]) =>
    widening.set(object, firstSentences([...(widening.get(object) ?? []), ...sentences]));
  const mode = accessModeOf(state.policy);
  const deciding = unmanaged
    .filter((object) => decidesIn(mode, object, state.policy))
    .sort((left, right) => Number(isExcepted(left)) - Number(isExcepted(right)));
  const reported: Reported = { byOpen: new ReportedGains(), byAll: new ReportedGains() };
  const keys = deciding.filter(isKey);
  const parts = deciding.filter((object) => kindOf(object).parts);
  const others = deciding.filter((object) => !isKey(object) && !kindOf(object).parts);
  if (keys.length > 0) {
    const gained = gainsOfRemoved(state, keys);
    const byKey = sentencesByKey(gained.lines());
    for (const key of keys) add(key, byKey.get(idWithin(key)) ?? []);
    const open = new Set(keys.filter((key) => !isExcepted(key)).map(idWithin));
    reported.byAll.add(gained.changes);
    reported.byOpen.add(gained.changes.filter(({ subject }) => open.has(subjectFacts(subject).id)));
  }
  if (parts.length > 0) {
    const gained = gainsOfRemoved(state, parts);
    for (const [part, sentences] of sentencesOfParts(parts, gained)) add(part, sentences);
    reported.byAll.add(gained.changes);
    reported.byOpen.add(onDevices(gained.changes, parts, isExcepted));
  }
  for (const object of others.slice(0, OTHERS_MAX)) {
    const gained = gainsOfRemoved(state, [object]);
    add(object, gained.sentences());
    reported.byAll.add(gained.changes);
    if (!isExcepted(object)) reported.byOpen.add(gained.changes);
  }
  const notEvaluated: string[] = [];
  const skipped = others.slice(OTHERS_MAX).filter((object) => !isExcepted(object));
  if (skipped.length > 0)
    notEvaluated.push(
      `the access of ${counted(skipped.length, "further unmanaged object")} was not evaluated: the limit is ${OTHERS_MAX}`,
    );
  // No other object gives the access of a key, and all parts (such as device tags) were evaluated together. Objects can
  // therefore share access only if there are at least two separate evaluations.
  if (others.length + Math.min(parts.length, 1) < 2) return { of: widening, notEvaluated };
  const isSilent = (object: LiveObject) => widening.get(object)?.length === 0;
  const together = accessTogether(state, deciding, reported, isExcepted, isSilent);
  for (const [object, sentences] of together.of)
    add(
      object,
      sentences.map((sentence) => `with other unmanaged objects: ${sentence}`),
    );
  const { unexplained } = together;
  const cut = [...together.cut].filter((object) => !skipped.includes(object)).length;
  if (cut > 0)
    notEvaluated.push(
      `unmanaged objects give access together, and ${counted(cut, "of them was", "of them were")} not evaluated: the limit is ${OTHERS_MAX}`,
    );
  else if (unexplained.length > 0 && skipped.length === 0) {
    const [first = ""] = unexplained;
    const more = unexplained.length > 1 ? `, and ${counted(unexplained.length - 1, "more change")}` : "";
    notEvaluated.push(`unmanaged objects give access only together: ${first}${more}`);
  }
  return { of: widening, notEvaluated };
}

const isKey = (object: LiveObject): boolean => kindOf(object).decides?.subject === "key";

/** The gains of unmanaged objects that the report already contains. */
interface Reported {
  /** The gains of objects without an exception. */
  readonly byOpen: ReportedGains;
  readonly byAll: ReportedGains;
}

/** The access that unmanaged objects give only together, or that each of several objects gives. */
interface TogetherGiven {
  /** The access that an object gives without the other objects, as sentences, by object. */
  readonly of: ReadonlyMap<LiveObject, readonly string[]>;
  /** The objects without an exception that were not evaluated because of the limit. */
  readonly cut: ReadonlySet<LiveObject>;
  /**
   * The access for which no single object is sufficient, as sentences. Empty if the access of an open object is
   * reported.
   */
  readonly unexplained: readonly string[];
}

/**
 * Returns the access that the namespace would lose only if several unmanaged objects were removed together. The first
 * comparison removes the open objects, which have no exception. The second comparison also removes the objects with an
 * exception, but keeps subjects such as keys. A subject with an exception can get access from another object, but no
 * other object can replace the subject.
 * @param isSilent returns true for an object for which no privilege is reported yet
 */
function accessTogether(
  state: NamespaceState,
  deciding: readonly LiveObject[],
  reported: Reported,
  isExcepted: (object: LiveObject) => boolean,
  isSilent: (object: LiveObject) => boolean,
): TogetherGiven {
  const of = new Map<LiveObject, readonly string[]>();
  const cut = new Set<LiveObject>();
  const unexplained: string[] = [];
  const open = deciding.filter((object) => !isExcepted(object));
  const replaceable = deciding.filter(
    (object) => !isExcepted(object) || kindOf(object).decides?.subject === undefined,
  );
  for (const removed of open.length === replaceable.length ? [open] : [open, replaceable]) {
    if (removed.length < 2) continue;
    const gained = gainsOfRemoved(state, removed);
    const left = gained.newIn(reported.byOpen);
    if (left.length === 0) continue;
    const devices = new Set(left.flatMap((change) => change.devices));
    const silent = removed.filter((object) => {
      const { parts } = kindOf(object);
      const isReached = parts === undefined || devices.has(parts.wholeOf(object));
      return isReached && !isKey(object) && isSilent(object) && !of.has(object);
    });
    const unreported = removed === open ? left : gained.newIn(reported.byAll);
    if (unreported.length === 0 && !silent.some((object) => !isExcepted(object))) continue;
    for (const object of silent.slice(OTHERS_MAX)) if (!isExcepted(object)) cut.add(object);
    const sufficient = sufficientObjects(state, removed, silent.slice(0, OTHERS_MAX), left);
    for (const [object, sentences] of sufficient) of.set(object, sentences);
    if (sufficient.size === 0 && open.length > 0) unexplained.push(...gained.sentences(unreported));
  }
  const hasOpen = [...of.keys()].some((object) => !isExcepted(object));
  return { of, cut, unexplained: hasOpen ? [] : unexplained };
}

/** Limits changes to the devices with at least one part (such as a tag) that has no exception. */
function onDevices(
  changes: readonly AccessChange[],
  parts: readonly LiveObject[],
  isExcepted: (part: LiveObject) => boolean,
): AccessChange[] {
  if (!parts.some(isExcepted)) return [...changes];
  const open = new Set(
    parts.filter((part) => !isExcepted(part)).map((part) => kindOf(part).parts?.wholeOf(part)),
  );
  return changes.flatMap((change) => {
    const devices = change.devices.filter((uid) => open.has(uid));
    return devices.length > 0 ? [{ ...change, devices }] : [];
  });
}

/**
 * Returns the privileges of an unmanaged object in addition to logins: a role above `observer`, or a different
 * privilege.
 */
function privilegesBesideLogins(object: LiveObject): string[] {
  const { role, watched } = kindOf(object);
  const held = role?.(object);
  const other = watched?.privilege?.(object.state);
  return [
    ...(held && isAboveObserver(held.role) ? [roleText(held)] : []),
    ...(other === undefined ? [] : [other]),
  ];
}

/** The access that a change to a namespace gives. */
class GainedAccess {
  readonly changes: readonly AccessChange[];
  readonly #before: Privileges;
  readonly #after: Privileges;

  constructor(before: NamespaceState, after: NamespaceState) {
    const compared = comparable(before, after);
    this.#before = compared.before;
    this.#after = compared.after;
    this.changes = Array.from(accessChanges(this.#before.access, this.#after.access)).filter(givesAccess);
  }

  lines(changes: readonly AccessChange[] = this.changes) {
    return linesOf(changes, this.#before.access, this.#after.access);
  }

  sentences(changes: readonly AccessChange[] = this.changes): string[] {
    return this.lines(changes).map((line) => accessSentence(line, PLAIN));
  }

  /** Returns the changes that a report does not contain yet. */
  newIn(reported: ReportedGains): AccessChange[] {
    return reported.newIn(this.changes, this.#after.access);
  }

  /** Returns the gained logins that the given changes also contain. */
  commonWith(others: readonly AccessChange[]): AccessChange[] {
    const [known, different] = [new ReportedGains(), new ReportedGains()];
    known.add(others);
    different.add(this.newIn(known));
    return this.newIn(different);
  }
}

/** Returns the access that objects give: the access that the namespace would lose without them. */
const gainsOfRemoved = (state: NamespaceState, objects: readonly LiveObject[]): GainedAccess =>
  new GainedAccess(state.without(objects), state);

/**
 * Returns sentences about the access that parts of objects give, such as the tags of devices. Only the first parts, up
 * to the limit, get detailed sentences about their logins.
 */
function sentencesOfParts(
  parts: readonly LiveObject[],
  gained: GainedAccess,
): ReadonlyMap<LiveObject, readonly string[]> {
  const wholeOf = (part: LiveObject) => kindOf(part).parts?.wholeOf(part) ?? "";
  const reached = new Set<string>();
  for (const { devices } of gained.changes) for (const uid of devices) reached.add(uid);
  const giving = parts.filter((part) => reached.has(wholeOf(part)));
  const detailed = giving.slice(0, OTHERS_MAX);
  const byDevice = new Map<string, AccessChange[]>(detailed.map((part) => [wholeOf(part), []]));
  for (const change of gained.changes)
    for (const uid of change.devices) byDevice.get(uid)?.push({ ...change, devices: [uid] });
  const sentences = new Map(Array.from(byDevice, ([uid, own]) => [uid, gained.sentences(own)] as const));
  return new Map(
    giving.map((part, index) => {
      const own = index < OTHERS_MAX ? sentences.get(wholeOf(part)) : undefined;
      return [part, own ?? ["admits logins on the device"]];
    }),
  );
}

/**
 * Returns sentences about the access that each of the given objects gives if all other objects in `removed` are absent.
 * Omits objects that give no access in this case.
 * @param left the access to consider
 */
function sufficientObjects(
  state: NamespaceState,
  removed: readonly LiveObject[],
  some: readonly LiveObject[],
  left: readonly AccessChange[],
): ReadonlyMap<LiveObject, readonly string[]> {
  const base = state.without(removed);
  const sentences = some.map((object) => {
    const others = removed.filter((other) => other !== object);
    const gained = new GainedAccess(base, state.without(others));
    return [object, gained.sentences(gained.commonWith(left))] as const;
  });
  return new Map(sentences.filter(([, own]) => own.length > 0));
}
