import type { AccessDevice, AccessPolicy } from "@gatehouse-access/sdk/policy";
import type { Plan, Step } from "../engine/index.ts";
import { idWithin, type LiveObject } from "../estate/liveObjects.ts";
import { type Estate, type NamespaceState, withoutObjects } from "../estate/namespaceState.ts";
import { plannedEstate } from "../plan/planned/plannedEstate.ts";

/** The step of a resource whose object somebody changed or deleted. */
export type Drifted = Step & { readonly op: "update" | "delete" };

/**
 * What a namespace would be if nobody had changed it by hand: what drifted is as the program declares it, and what nobody
 * declares is not there. What else the program would change stays as it is.
 * @param plan a preview with values
 * @param drifted what somebody changed or deleted
 * @param unmanaged the objects that are not to be there
 * @param home the namespace of resources that name none
 */
export function declaredEstate(
  estate: Estate,
  plan: Plan,
  drifted: readonly Drifted[],
  unmanaged: readonly LiveObject[],
  home: string,
): NamespaceState {
  const planned = plannedEstate(estate, onlyDrifted(plan, new Map(drifted.map(({ urn, op }) => [urn, op]))), {
    home,
  });
  const idsOf = (kind: string) =>
    new Set(unmanaged.filter(({ definition }) => definition.name === kind).map(idWithin));
  const [members, apiKeys] = [idsOf("Member"), idsOf("ApiKey")];
  return {
    policy: withoutObjects(devicesBefore(planned.policy, estate, drifted), {
      keys: idsOf("PublicKey"),
      rules: idsOf("FirewallRule"),
      tags: idsOf("DeviceTagAttachment"),
    }),
    members: planned.members?.filter(({ id }) => !members.has(id)),
    apiKeys: planned.apiKeys?.filter(({ name }) => !apiKeys.has(name)),
    unseen: planned.unseen,
    unknown: planned.unknown,
  };
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
