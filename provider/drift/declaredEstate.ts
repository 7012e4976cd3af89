import type { AccessPolicy } from "@gatehouse-access/sdk/policy";
import type { Plan, Step } from "../engine/index.ts";
import type { LiveObject } from "../inventory/liveObjects.ts";
import { idWithin } from "../inventory/liveObjects.ts";
import type { Estate, NamespaceState } from "../review/estate.ts";
import { plannedEstate } from "../review/planned/plannedEstate.ts";

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
    policy: withoutObjects(planned.policy, {
      keys: idsOf("PublicKey"),
      rules: idsOf("FirewallRule"),
      tags: idsOf("DeviceTagAttachment"),
    }),
    members: planned.members?.filter(({ id }) => !members.has(id)),
    apiKeys: planned.apiKeys?.filter(({ name }) => !apiKeys.has(name)),
    unknown: planned.unknown,
  };
}

/** Objects of a policy: fingerprints of keys, ids of rules, and tags on devices as `uid/tag`. */
export interface PolicyObjects {
  readonly keys?: ReadonlySet<string>;
  readonly rules?: ReadonlySet<string>;
  readonly tags?: ReadonlySet<string>;
}

/** A policy as it would be without some of its objects. */
export function withoutObjects(policy: AccessPolicy, { keys, rules, tags }: PolicyObjects): AccessPolicy {
  return {
    keys: keys ? policy.keys.filter(({ fingerprint }) => !keys.has(fingerprint)) : policy.keys,
    rules: rules ? policy.rules.filter(({ id }) => !rules.has(id)) : policy.rules,
    devices: tags?.size
      ? policy.devices.map((device) => ({
          ...device,
          tags: device.tags.filter((tag) => !tags.has(`${device.uid}/${tag}`)),
        }))
      : policy.devices,
  };
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
