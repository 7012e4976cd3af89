import type { Access, AccessDevice, NamespacePolicy } from "@gatehouse-access/sdk/policy";
import type { Plan, Step } from "../engine/index.ts";
import type { LiveObject } from "../estate/liveObjects.ts";
import { type Estate, inOrder, type NamespaceState, withoutObjects } from "../estate/namespaceState.ts";
import { plannedEstate } from "../plan/planned/plannedEstate.ts";
import { settingChanges } from "../resources/namespace.ts";
import { idWithin } from "../resources/values.ts";
import { accessEffect } from "../review/accessEffect.ts";
import { accesses, firstSentences, sentencesByKey } from "../review/accessLines.ts";
import {
  accessSentence,
  apiKeySentence,
  memberSentence,
  PLAIN,
  settingSentence,
  tokensPhrase,
  workloadSentence,
} from "../review/report/sections.ts";
import { apiKeyChanges, memberChanges, workloadChanges } from "../review/roleChanges.ts";
import type { DriftedNamespace } from "./driftReport.ts";

/** The step of a resource whose object was changed or deleted out of band. */
export type Drifted = Step & { readonly op: "update" | "delete" };

/** The drift to evaluate in one namespace. */
export interface NamespaceDrift {
  readonly estate: Estate;
  readonly plan: Plan;
  /** The steps of changed or deleted objects, in this and in other namespaces. */
  readonly drifted: readonly Drifted[];
  /** The unmanaged objects of the namespace, without those that access.ignore excepts. */
  readonly unmanaged: readonly LiveObject[];
  /** The namespace of resources without a tenant; an empty string if there is no such namespace. */
  readonly home: string;
}

/** The effect of drift on the access in one namespace. */
export interface DriftMeaning {
  readonly namespace: DriftedNamespace;
  /** Access after all drift is reverted. */
  readonly before: Access;
  /** Access in the live namespace. */
  readonly after: Access;
  /** The effect of each changed or deleted object on access, as sentences by the URN of its resource. */
  readonly ofResources: ReadonlyMap<string, readonly string[]>;
  readonly ofObjects: ReadonlyMap<LiveObject, readonly string[]>;
  readonly notEvaluated: readonly string[];
  readonly unknown: readonly string[];
  /** The reason why the access is not known. */
  readonly accessUnknown: string | undefined;
}

/**
 * Maximum number of rules, tags and members whose effect on access is computed individually. Each of these objects
 * requires a separate evaluation of the namespace.
 */
const EACH_MAX = 20;

const EFFECT_UNKNOWN = "the effect on access is not known";

/** Evaluates the effect of drift on access: the effect of all drift together, and the effect of each object. */
export function driftMeaning(drift: NamespaceDrift): DriftMeaning {
  const { estate, plan, drifted, unmanaged, home } = drift;
  const live = inOrder<NamespaceState>({ ...estate, notEvaluated: [], unknown: [] });
  const without = (resources: readonly Drifted[], objects: readonly LiveObject[]) =>
    inOrder(declaredEstate(estate, plan, resources, objects, home));
  const declared = without(drifted, unmanaged);
  const { before, after } = accesses(declared.policy, live.policy, estate);
  const isKnown = estate.accessUnknown === undefined;
  const effect = accessEffect(before, after);
  const access = isKnown ? effect.lines : null;
  const byKey = sentencesByKey(access ?? []);
  const reachOfPart = (part: NamespaceState) => {
    if (!isKnown) return [EFFECT_UNKNOWN];
    const compared = accesses(part.policy, live.policy, estate);
    const { lines } = accessEffect(compared.before, compared.after);
    return firstSentences(lines.map((line) => accessSentence(line, PLAIN)));
  };
  const ofPart = (part: NamespaceState) => {
    const { members, workloads, apiKeys, settings } = otherChanges(part, live);
    return [
      ...reachOfPart(part),
      ...members.map((change) => memberSentence(change, PLAIN)),
      ...workloads.map((change) => workloadSentence(change, PLAIN)),
      ...apiKeys.map((change) => `API key ${apiKeySentence(change, PLAIN)}`),
      ...settings.map((change) => settingSentence(change, PLAIN)),
    ];
  };
  let left = EACH_MAX;
  const each = (work: () => readonly string[]): readonly string[] => {
    left -= 1;
    return left < 0
      ? [`effect on access not evaluated: the limit is ${EACH_MAX} changes for each namespace`]
      : work();
  };
  const ofResources = drifted.map((resource) => {
    const { urn, type, id = "" } = resource;
    const isKey = type.endsWith(":PublicKey");
    return [
      urn,
      isKey && isKnown ? (byKey.get(idWithin({ id })) ?? []) : each(() => ofPart(without([resource], []))),
    ] as const;
  });
  // A member has access to devices only by access policies.
  const memberAccess = (object: LiveObject) =>
    live.policy.identity ? each(() => reachOfPart(withoutObjects(live, [object]))) : [];
  const ofObjects = unmanaged.map((object) => {
    const privilege = object.definition.privilege?.(object.state ?? {});
    if (privilege !== undefined) return [object, [privilege]] as const;
    switch (object.definition.name) {
      case "PublicKey":
        return [
          object,
          isKnown ? (byKey.get(idWithin(object)) ?? ["gives no access at present"]) : [EFFECT_UNKNOWN],
        ] as const;
      case "FirewallRule":
      case "AccessPolicy":
      case "ServiceAccount":
      case "DeviceTagAttachment":
        return [object, each(() => ofPart(withoutObjects(live, [object])))] as const;
      case "TrustedWorkload": {
        const workload = live.trustedWorkloads?.find(({ id }) => id === idWithin(object));
        const tokens = workload ? ` for ${tokensPhrase(workload, PLAIN)}` : "";
        return [object, [`${permissionsOf(object)}${tokens}`]] as const;
      }
      case "Member":
        return [object, [permissionsOf(object), ...memberAccess(object)]] as const;
      default:
        return [object, [permissionsOf(object)]] as const;
    }
  });
  return {
    namespace: {
      tenant: estate.tenant,
      name: estate.name,
      access,
      ...otherChanges(declared, live),
    },
    before,
    after,
    accessUnknown: estate.accessUnknown,
    ofResources: new Map(ofResources),
    ofObjects: new Map(ofObjects),
    notEvaluated: [...estate.notEvaluated, ...declared.notEvaluated, ...effect.notEvaluated],
    unknown: [...estate.unknown, ...declared.unknown],
  };
}

/** The changes of roles and settings between two states of a namespace. */
const otherChanges = (before: NamespaceState, after: NamespaceState) => ({
  members: memberChanges(before.members ?? [], after.members ?? []),
  workloads: workloadChanges(before.trustedWorkloads ?? [], after.trustedWorkloads ?? []),
  apiKeys: apiKeyChanges(before.apiKeys ?? [], after.apiKeys ?? []),
  settings: before.settings && after.settings ? settingChanges(before.settings, after.settings) : [],
});

function permissionsOf({ definition, state }: LiveObject): string {
  const role = String(state?.role ?? "member");
  const permissions = `has the permissions of ${/^[aeiou]/.test(role) ? "an" : "a"} ${role}`;
  if (definition.name !== "ApiKey") return permissions;
  return state?.expiresAt
    ? `${permissions} until ${String(state.expiresAt).slice(0, 10)}`
    : `${permissions} without expiry`;
}

/**
 * The namespace without drift: changed and deleted objects are as the program declares them, and unmanaged objects are
 * removed. Pending changes of the program are not applied.
 */
function declaredEstate(
  estate: Estate,
  plan: Plan,
  drifted: readonly Drifted[],
  unmanaged: readonly LiveObject[],
  home: string,
): NamespaceState {
  const steps = new Map(drifted.map((step) => [step.urn, step]));
  const planned = plannedEstate(estate, onlyDrifted(plan, steps), { home });
  return withoutObjects({ ...planned, policy: devicesBefore(planned.policy, estate, drifted) }, unmanaged);
}

/** The policy with the names and statuses that the devices had before the drift. */
function devicesBefore(
  policy: NamespacePolicy,
  { devices }: Estate,
  drifted: readonly Drifted[],
): NamespacePolicy {
  const previous = new Map(
    drifted.flatMap(({ fields, id = "" }) => {
      const old = (path: string) => fields.find((field) => field.path === path)?.old;
      const [name, status] = [old("deviceName"), old("deviceStatus")];
      const [uid = ""] = idWithin({ id }).split("/");
      return (name ?? status) === undefined ? [] : [[uid, { name, status }] as const];
    }),
  );
  if (previous.size === 0) return policy;
  const accepted = new Map(policy.devices.map((device) => [device.uid, device]));
  const others = policy.devices.filter(({ uid }) => !previous.has(uid));
  const changed = devices.flatMap((device): AccessDevice[] => {
    const was = previous.get(device.uid);
    if (!was || (was.status ?? device.status) !== "accepted") return [];
    const { uid, name, tags } = accepted.get(device.uid) ?? device;
    return [{ uid, tags, name: typeof was.name === "string" ? was.name : name }];
  });
  return { ...policy, devices: [...others, ...changed] };
}

/** A plan that reverts the drifted resources to their declarations and changes nothing else. */
function onlyDrifted(plan: Plan, drifted: ReadonlyMap<string, Drifted>): Plan {
  const steps = plan.steps.flatMap(({ before, ...step }): Step[] => {
    const { op, before: deleted = before } = drifted.get(step.urn) ?? {};
    if (op === "delete") {
      if (!step.after) return [];
      // The program may not know the outputs of the deleted object, such as the id of a user, but the state does.
      const outputs = { ...step.after.outputs, ...deleted?.outputs };
      return [{ ...step, op: "create", after: { ...step.after, outputs } }];
    }
    if (!before) return [];
    if (op === undefined) return [{ ...step, op: "same", fields: [], before, after: before }];
    return [{ ...step, op: step.op === "same" ? "update" : step.op, before }];
  });
  return { ...plan, steps };
}
