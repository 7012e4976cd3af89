import type { Access } from "@gatehouse-access/sdk/policy";
import type { Plan, Step } from "../engine/index.ts";
import type { LiveObject } from "../model/object.ts";
import { permissionsText } from "../model/roles.ts";
import { idWithin } from "../model/values.ts";
import type { NamespaceState } from "../namespace/namespaceState.ts";
import { applyPlan } from "../plan/planned/appliedPlan.ts";
import { accessSentence, firstSentences, sentencesByKey } from "../privileges/accessLines.ts";
import { decidesAboutLogins } from "../privileges/effects.ts";
import {
  changeLists,
  changesIn,
  comparable,
  differenceOf,
  type OtherChanges,
  type PrivilegeChanges,
} from "../privileges/privileges.ts";
import { withEarlierDevices } from "../resources/device.ts";
import { kindOf } from "../resources/index.ts";
import { PLAIN } from "../style.ts";
import { ownTypeName } from "../urn.ts";
import type { DriftedNamespace } from "./driftReport.ts";

/** The step of a resource whose object was changed or deleted out of band. */
export type Drifted = Step & { readonly op: "update" | "delete" };

/** The drift to evaluate in one namespace. */
export interface NamespaceDrift {
  readonly live: NamespaceState;
  readonly plan: Plan;
  /** The steps of changed or deleted objects. Includes the steps in other namespaces. */
  readonly drifted: readonly Drifted[];
  /** The unmanaged objects of the namespace that have no exception in `access.ignore`. */
  readonly unmanaged: readonly LiveObject[];
  /** The namespace of resources that do not set a tenant. An empty string if there is no such namespace. */
  readonly home: string;
}

/** The effect of drift on the access in one namespace. */
export interface DriftMeaning {
  readonly namespace: DriftedNamespace;
  /** The access after all drift is reverted. */
  readonly before: Access;
  /** Access in the live namespace. */
  readonly after: Access;
  /** The effects of each changed or deleted object on access, as sentences by the URN of the resource. */
  readonly ofResources: ReadonlyMap<string, readonly string[]>;
  readonly ofObjects: ReadonlyMap<LiveObject, readonly string[]>;
  readonly notEvaluated: readonly string[];
  readonly unknown: readonly string[];
  /** The reason why the access is not known. Undefined if the access is known. */
  readonly accessUnknown: string | undefined;
}

/**
 * Maximum number of rules, tags and members whose effect on access is computed individually. Each of these objects
 * requires a separate evaluation of the namespace.
 */
const EACH_MAX = 20;

const EFFECT_UNKNOWN = "the effect on access is not known";

/** Evaluates the effect of drift on privileges: the effect of all drift together, and the effect of each object. */
export function driftMeaning(drift: NamespaceDrift): DriftMeaning {
  const { plan, drifted, unmanaged, home } = drift;
  const live = drift.live.with({ notEvaluated: [], unknown: [] }).inOrder();
  const without = (resources: readonly Drifted[], objects: readonly LiveObject[]) =>
    declaredState(drift.live, plan, resources, objects, home);
  const declared = without(drifted, unmanaged);
  const { before, after } = comparable(declared, live);
  const { accessUnknown } = live;
  const isKnown = accessUnknown === undefined;
  const { changes, notEvaluated } = differenceOf(before, after);
  const byKey = sentencesByKey(changes.access ?? []);
  const changesSince = (part: NamespaceState) => {
    const compared = comparable(part, live);
    return differenceOf(compared.before, compared.after).changes;
  };
  const reachIn = ({ access }: PrivilegeChanges) =>
    isKnown ? firstSentences((access ?? []).map((line) => accessSentence(line, PLAIN))) : [EFFECT_UNKNOWN];
  const ofPart = (part: NamespaceState) => {
    const changes = changesSince(part);
    return [...reachIn(changes), ...sentencesOf(changes)];
  };
  let left = EACH_MAX;
  const each = (work: () => readonly string[]): readonly string[] => {
    left -= 1;
    return left < 0
      ? [`effect on access not evaluated: the limit is ${EACH_MAX} changes for each namespace`]
      : work();
  };
  const ofKey = (id: string) => byKey.get(id) ?? [];
  const ofResources = drifted.map((resource) => {
    const { urn, id = "" } = resource;
    return [
      urn,
      isKey(resource) && isKnown ? ofKey(idWithin({ id })) : each(() => ofPart(without([resource], []))),
    ] as const;
  });
  const ofObjects = unmanaged.map((object) => {
    const { role, watched, decides, parts } = kindOf(object);
    const held = role?.(object);
    const other = watched?.privilege?.(object.state);
    const beside = [...(held ? [permissionsText(held)] : []), ...(other === undefined ? [] : [other])];
    // If the access is not known, the policy may not contain the objects that authorize logins in the current mode.
    if (!isKnown) return [object, decides || parts ? [...beside, EFFECT_UNKNOWN] : beside] as const;
    if (decides?.subject === "key") {
      const sentences = ofKey(idWithin(object));
      return [object, sentences.length > 0 ? sentences : ["gives no access at present"]] as const;
    }
    const access = decidesAboutLogins(object, live.policy)
      ? each(() => reachIn(changesSince(live.without([object]))))
      : [];
    return [object, [...beside, ...access]] as const;
  });
  return {
    namespace: { tenant: live.tenant, name: live.name, ...changes },
    before: before.access,
    after: after.access,
    accessUnknown,
    ofResources: new Map(ofResources),
    ofObjects: new Map(ofObjects),
    notEvaluated: [...drift.live.notEvaluated, ...declared.notEvaluated, ...notEvaluated],
    unknown: [...drift.live.unknown, ...declared.unknown],
  };
}

/**
 * Returns true for the resource of a public key. Its effects need no separate evaluation, because the access sentences
 * are grouped by key.
 */
const isKey = ({ type }: Step): boolean =>
  kindOf({ definition: { name: ownTypeName(type) ?? "" } })?.decides?.subject === "key";

/** Returns sentences about the changes to all privileges except access. */
const sentencesOf = (changes: OtherChanges): string[] =>
  changeLists.flatMap(({ list, subject, sentence }) =>
    changesIn(changes, list).map((change) => `${subject}${sentence(change, PLAIN)}`),
  );

/**
 * Returns the namespace without drift: changed and deleted objects are as the program declares them, and unmanaged
 * objects are removed. Does not apply pending changes of the program.
 */
function declaredState(
  live: NamespaceState,
  plan: Plan,
  drifted: readonly Drifted[],
  unmanaged: readonly LiveObject[],
  home: string,
): NamespaceState {
  const steps = new Map(drifted.map((step) => [step.urn, step]));
  const { state } = applyPlan(live, onlyDrifted(plan, steps), { home });
  return withEarlierDevices(state, drifted).without(unmanaged).inOrder();
}

/** Returns a plan that reverts the drifted resources to their declarations and changes nothing else. */
function onlyDrifted(plan: Plan, drifted: ReadonlyMap<string, Drifted>): Plan {
  const steps = plan.steps.flatMap(({ before, ...step }): Step[] => {
    const { op, before: deleted = before } = drifted.get(step.urn) ?? {};
    if (op === "delete") {
      if (!step.after) return [];
      // The plan may not contain the outputs of a deleted object, such as the id of a user. The state contains them.
      const outputs = { ...step.after.outputs, ...deleted?.outputs };
      return [{ ...step, op: "create", after: { ...step.after, outputs } }];
    }
    if (!before) return [];
    if (op === undefined) return [{ ...step, op: "same", fields: [], before, after: before }];
    return [{ ...step, op: step.op === "same" ? "update" : step.op, before }];
  });
  return { ...plan, steps };
}
