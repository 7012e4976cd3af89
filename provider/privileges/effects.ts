import { type AccessChange, accessChanges, type NamespacePolicy } from "@gatehouse-access/sdk/policy";
import { kindOf, kinds } from "../kinds/index.ts";
import type { NamespaceState } from "../kinds/namespaceState.ts";
import type { LiveObject } from "../kinds/object.ts";
import { isAboveObserver, roleText } from "../kinds/roles.ts";
import type { KindName } from "../resources/index.ts";
import { idWithin } from "../resources/values.ts";
import { PLAIN } from "../style.ts";
import { counted } from "../words.ts";
import { givesAccess, ReportedGains } from "./accessEffect.ts";
import { accessSentence, firstSentences, linesOf, sentencesByKey } from "./accessLines.ts";
import { comparable, type Privileges } from "./privileges.ts";

/**
 * Maximum number of unmanaged objects other than keys whose access is evaluated. Each of these objects requires
 * evaluations of the namespace.
 */
const OTHERS_MAX = 20;

/**
 * Returns true if an object can decide about logins in a namespace: it takes part in the decision in the present access
 * mode, or it is a part of an object that does.
 */
export function decidesAboutLogins(object: LiveObject, policy: NamespacePolicy): boolean {
  const { definition, decides, parts } = kindOf(object);
  const deciding = decides ?? (parts && kinds[parts.whole.name as KindName].decides);
  if (!deciding) return false;
  const mode = policy.identity ? "identity" : "legacy";
  const isActive = definition.actsIn === undefined || definition.actsIn === mode;
  return isActive && (deciding.isDeciding?.(object, policy) ?? true);
}

/** The access and the other privileges that unmanaged objects give. */
export interface Widening {
  /** The privileges of each object, as sentences without their subject; empty if the object gives none. */
  readonly of: ReadonlyMap<LiveObject, readonly string[]>;
  /** The objects, or the access, that could not be evaluated, as sentences. */
  readonly notEvaluated: readonly string[];
}

/**
 * Returns the privileges that unmanaged objects give: their roles above observer, and the access that the namespace would
 * lose without them. Objects can give the same access, so that the namespace would lose it only without all of them: each
 * object that is sufficient for such access gives it too.
 * @param isExcepted returns true for an object with an exception, which is evaluated last
 */
export function wideningOf(
  state: NamespaceState,
  unmanaged: readonly LiveObject[],
  isExcepted: (object: LiveObject) => boolean,
): Widening {
  const widening = new Map<LiveObject, readonly string[]>(
    unmanaged.map((object) => [object, privilegesBesideLogins(object)]),
  );
  const add = (object: LiveObject, sentences: readonly string[]) =>
    widening.set(object, firstSentences([...(widening.get(object) ?? []), ...sentences]));
  const deciding = unmanaged.filter((object) => decidesAboutLogins(object, state.policy));
  if (deciding.length === 0 || state.accessUnknown !== undefined) return { of: widening, notEvaluated: [] };
  const reported = new ReportedGains();
  const keys = deciding.filter((object) => kindOf(object).decides?.subject === "key");
  const gainedByKeys = keys.length === 0 ? undefined : gainsOfRemoved(state, keys);
  const byKey = sentencesByKey(gainedByKeys?.lines() ?? []);
  for (const key of keys) add(key, byKey.get(idWithin(key)) ?? []);
  reported.add(gainedByKeys?.changes ?? []);
  const parts = deciding.filter((object) => kindOf(object).parts);
  const ofParts = parts.length === 0 ? undefined : gainsOfRemoved(state, parts);
  for (const [part, sentences] of sentencesOfParts(parts, ofParts)) add(part, sentences);
  reported.add(ofParts?.changes ?? []);
  const others = deciding
    .filter((object) => !keys.includes(object) && !parts.includes(object))
    .sort((left, right) => Number(isExcepted(left)) - Number(isExcepted(right)));
  for (const object of others.slice(0, OTHERS_MAX)) {
    const gained = gainsOfRemoved(state, [object]);
    add(object, gained.sentences());
    reported.add(gained.changes);
  }
  const left = deciding.length < 2 ? [] : gainsOfRemoved(state, deciding).newIn(reported);
  const skipped = others.slice(OTHERS_MAX).filter((object) => !isExcepted(object)).length;
  const notEvaluated =
    skipped === 0
      ? []
      : [
          `the access of ${counted(skipped, "further unmanaged object")} was not evaluated: the limit is ${OTHERS_MAX}`,
        ];
  if (left.length === 0) return { of: widening, notEvaluated };
  const silent = deciding.filter((object) => (widening.get(object) ?? []).length === 0);
  const together = sufficientObjects(state, deciding, silent.slice(0, OTHERS_MAX));
  for (const [object, sentences] of together)
    add(
      object,
      sentences.map((sentence) => `with other unmanaged objects: ${sentence}`),
    );
  if (together.size > 0 || skipped > 0) return { of: widening, notEvaluated };
  const [first = ""] = left;
  const more = left.length > 1 ? `, and ${counted(left.length - 1, "more change")}` : "";
  return {
    of: widening,
    notEvaluated: [...notEvaluated, `unmanaged objects give access only together: ${first}${more}`],
  };
}

/** Returns the privileges of an unmanaged object beside logins: a role above observer, or another privilege. */
function privilegesBesideLogins(object: LiveObject): string[] {
  const { role, watched } = kindOf(object);
  const held = role?.(object);
  const other = watched?.privilege?.(object.state);
  return [
    ...(held && isAboveObserver(held.role) ? [roleText(held)] : []),
    ...(other === undefined ? [] : [other]),
  ];
}

/** Access that a change of a namespace gives. */
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

  /** Returns sentences about the access that a report does not contain yet. */
  newIn(reported: ReportedGains): string[] {
    return this.sentences(reported.newIn(this.changes, this.#after.access));
  }
}

/** Returns the access that objects give: the access that the namespace loses without them. */
const gainsOfRemoved = (state: NamespaceState, objects: readonly LiveObject[]): GainedAccess =>
  new GainedAccess(state.without(objects), state);

/** Returns the access that parts of objects give, such as the tags of devices, as sentences by the part. */
function sentencesOfParts(
  parts: readonly LiveObject[],
  gained: GainedAccess | undefined,
): ReadonlyMap<LiveObject, readonly string[]> {
  const sentences = new Map<LiveObject, readonly string[]>();
  const byDevice = new Map<string, AccessChange[]>();
  for (const change of gained?.changes ?? []) {
    for (const uid of change.devices) {
      const known = byDevice.get(uid) ?? [];
      known.push({ ...change, devices: [uid] });
      byDevice.set(uid, known);
    }
  }
  for (const part of parts) {
    const own = byDevice.get(kindOf(part).parts?.wholeOf(part) ?? "");
    if (!own) continue;
    sentences.set(
      part,
      sentences.size < OTHERS_MAX ? (gained?.sentences(own) ?? []) : ["admits logins on the device"],
    );
  }
  return sentences;
}

/**
 * Returns the access that each of some objects gives without all other unmanaged objects, as sentences. Omits objects that
 * give none.
 */
function sufficientObjects(
  state: NamespaceState,
  unmanaged: readonly LiveObject[],
  some: readonly LiveObject[],
): ReadonlyMap<LiveObject, readonly string[]> {
  const base = state.without(unmanaged);
  const sentences = some.map((object) => {
    const others = unmanaged.filter((other) => other !== object);
    return [object, new GainedAccess(base, state.without(others)).sentences()] as const;
  });
  return new Map(sentences.filter(([, own]) => own.length > 0));
}
