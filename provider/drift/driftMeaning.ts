import type { Access, AccessDevice, AccessPolicy } from "@gatehouse-access/sdk/policy";
import type { Plan, Step } from "../engine/index.ts";
import type { LiveObject } from "../estate/liveObjects.ts";
import { type Estate, inOrder, type NamespaceState, withoutObjects } from "../estate/namespaceState.ts";
import { plannedEstate } from "../plan/planned/plannedEstate.ts";
import { idWithin } from "../resources/values.ts";
import { accesses, accessLines, firstSentences, sentencesByKey } from "../review/accessLines.ts";
import { accessSentence, memberSentence, PLAIN } from "../review/report/sections.ts";
import { memberChanges } from "../review/reviewNamespace.ts";
import type { DriftedNamespace } from "./driftReport.ts";

/** The step of a resource whose object somebody changed or deleted. */
export type Drifted = Step & { readonly op: "update" | "delete" };

export interface NamespaceDrift {
  readonly estate: Estate;
  readonly plan: Plan;
  /** The steps of what somebody changed or deleted, here or elsewhere. */
  readonly drifted: readonly Drifted[];
  /** The objects of the namespace that no program declares, without those that are excepted. */
  readonly unmanaged: readonly LiveObject[];
  /** The namespace of resources that name none; an empty text where there is none. */
  readonly home: string;
}

export interface DriftMeaning {
  readonly namespace: DriftedNamespace;
  /** As the program declares it. */
  readonly before: Access;
  readonly after: Access;
  /** Of what somebody changed or deleted, by URN. */
  readonly ofResources: ReadonlyMap<string, readonly string[]>;
  readonly ofObjects: ReadonlyMap<LiveObject, readonly string[]>;
  readonly unseen: readonly string[];
  readonly unknown: readonly string[];
}

/** Most rules, tags and members whose own part is told: each takes an evaluation of the whole namespace. */
const EACH_MAX = 20;

/** What drift means for who can reach what, all of it together and each part by itself. */
export function driftMeaning(drift: NamespaceDrift): DriftMeaning {
  const { estate, plan, drifted, unmanaged, home } = drift;
  const live = inOrder<NamespaceState>({ ...estate, unseen: [], unknown: [] });
  const without = (resources: readonly Drifted[], objects: readonly LiveObject[]) =>
    inOrder(declaredEstate(estate, plan, resources, objects, home));
  const declared = without(drifted, unmanaged);
  const { before, after } = accesses(declared.policy, live.policy, estate);
  const access = accessLines(before, after);
  const byKey = sentencesByKey(access);
  const ofPart = (part: NamespaceState) => {
    const compared = accesses(part.policy, live.policy, estate);
    return [
      ...firstSentences(
        accessLines(compared.before, compared.after).map((line) => accessSentence(line, PLAIN)),
      ),
      ...memberChanges(part.members ?? [], live.members ?? []).map((change) => memberSentence(change, PLAIN)),
    ];
  };
  let left = EACH_MAX;
  const each = (work: () => readonly string[]): readonly string[] => {
    left -= 1;
    return left < 0
      ? [`what it means was not evaluated: only ${EACH_MAX} changes of a namespace are`]
      : work();
  };
  const ofResources = drifted.map((resource) => {
    const { urn, type, id = "" } = resource;
    const isKey = type.endsWith(":PublicKey");
    return [
      urn,
      isKey ? (byKey.get(idWithin({ id })) ?? []) : each(() => ofPart(without([resource], []))),
    ] as const;
  });
  const ofObjects = unmanaged.map((object) => {
    switch (object.definition.name) {
      case "PublicKey":
        return [object, byKey.get(idWithin(object)) ?? ["opens nothing, as things are"]] as const;
      case "FirewallRule":
      case "DeviceTagAttachment":
        return [object, each(() => ofPart(withoutObjects(live, [object])))] as const;
      default:
        return [object, [rightsOf(object)]] as const;
    }
  });
  return {
    namespace: {
      tenant: estate.tenant,
      name: estate.name,
      access,
      members: memberChanges(declared.members ?? [], live.members ?? []),
    },
    before,
    after,
    ofResources: new Map(ofResources),
    ofObjects: new Map(ofObjects),
    unseen: [...estate.unseen, ...declared.unseen],
    unknown: [...estate.unknown, ...declared.unknown],
  };
}

function rightsOf({ definition, state }: LiveObject): string {
  const role = String(state?.role ?? "member");
  const may = `may do what ${/^[aeiou]/.test(role) ? "an" : "a"} ${role} may`;
  if (definition.name !== "ApiKey") return may;
  return state?.expiresAt ? `${may}, until ${String(state.expiresAt).slice(0, 10)}` : `${may}, for ever`;
}

/**
 * What a namespace would be if nobody had changed it by hand: what drifted is as the program declares it, and what nobody
 * declares is not there. What else the program would change stays as it is.
 */
function declaredEstate(
  estate: Estate,
  plan: Plan,
  drifted: readonly Drifted[],
  unmanaged: readonly LiveObject[],
  home: string,
): NamespaceState {
  const ops = new Map(drifted.map(({ urn, op }) => [urn, op]));
  const planned = plannedEstate(estate, onlyDrifted(plan, ops), { home });
  return withoutObjects({ ...planned, policy: devicesBefore(planned.policy, estate, drifted) }, unmanaged);
}

/** The policy with devices as they were named, and accepted or not, before somebody changed that. */
function devicesBefore(policy: AccessPolicy, { devices }: Estate, drifted: readonly Drifted[]): AccessPolicy {
  const were = new Map(
    drifted.flatMap(({ fields, id = "" }) => {
      const old = (path: string) => fields.find((field) => field.path === path)?.old;
      const [name, status] = [old("deviceName"), old("deviceStatus")];
      const [uid = ""] = idWithin({ id }).split("/");
      return (name ?? status) === undefined ? [] : [[uid, { name, status }] as const];
    }),
  );
  if (were.size === 0) return policy;
  const accepted = new Map(policy.devices.map((device) => [device.uid, device]));
  const others = policy.devices.filter(({ uid }) => !were.has(uid));
  const changed = devices.flatMap((device): AccessDevice[] => {
    const was = were.get(device.uid);
    if (!was || (was.status ?? device.status) !== "accepted") return [];
    const { uid, name, tags } = accepted.get(device.uid) ?? device;
    return [{ uid, tags, name: typeof was.name === "string" ? was.name : name }];
  });
  return { ...policy, devices: [...others, ...changed] };
}

/** The plan in which everything stays that nobody changed by hand, and the rest becomes what the program says. */
function onlyDrifted(plan: Plan, drifted: ReadonlyMap<string, Drifted["op"]>): Plan {
  const steps = plan.steps.flatMap(({ before, ...step }): Step[] => {
    const op = drifted.get(step.urn);
    if (op === "delete") return step.after ? [{ ...step, op: "create" }] : [];
    if (!before) return [];
    if (op === undefined) return [{ ...step, op: "same", fields: [], before, after: before }];
    return [{ ...step, op: step.op === "same" ? "update" : step.op, before }];
  });
  return { ...plan, steps };
}
