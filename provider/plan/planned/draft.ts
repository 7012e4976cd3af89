import type { Role } from "@gatehouse-access/sdk/contract";
import type {
  AccessKey,
  AccessPolicy,
  AccessRule,
  NamespacePolicy,
  Principal,
} from "@gatehouse-access/sdk/policy";
import { identityRules } from "../../estate/identityMode.ts";
import { acceptedDevices, type Estate, policyMember, type Workload } from "../../estate/namespaceState.ts";
import type { NamespaceSettings } from "../../resources/namespace.ts";
import { type ApiKey, apiKeyIdentity, type Device, deviceKey, devicesByKey } from "../../service/listings.ts";
import type { Member } from "../../service/newerListings.ts";

/** An API key in the predicted namespace after a plan. */
export interface PlannedApiKey extends Omit<ApiKey, "role"> {
  /** Role of the key; undefined if the key gets the role of its creator and this role is unknown. */
  readonly role: Role | undefined;
}

/**
 * Thrown if the result of a planned step cannot be predicted. Reports show the message after the title of the resource.
 */
export class UnpredictableError extends Error {
  override readonly name = "UnpredictableError";
}

/**
 * Returns the error for values that are secret or unknown before the apply.
 * @param names the names of the values
 */
export function hiddenValues(names: readonly string[]): UnpredictableError {
  const verb = names.length === 1 ? "is" : "are";
  return new UnpredictableError(`its ${names.join(" and ")} ${verb} secret or unknown before the apply`);
}

/**
 * A copy of a namespace to which the steps of a plan are applied one by one, to predict the namespace after the plan.
 */
export class Draft {
  readonly estate: Estate;
  /** Time at which the plan is applied. */
  readonly now: Date;
  /** The role of the user or API key that applies the plan; undefined if unknown. */
  readonly creatorRole: Role | undefined;
  /** Public keys by fingerprint. */
  readonly keys: Map<string, AccessKey>;
  /** Firewall rules by id. */
  readonly rules: Map<string, AccessRule>;
  /** Access policies by id. Undefined on servers without access policies, and if they could not be read. */
  readonly policies: Map<string, AccessPolicy> | undefined;
  /** Service accounts by id; new accounts by the URN of their resource. Undefined as {@link policies}. */
  readonly serviceAccounts: Map<string, Principal> | undefined;
  /** The ids of principals that the plan creates, by the URN of their resource. */
  readonly newPrincipals = new Map<string, string>();
  /** True if access policies decide about logins. */
  accessPoliciesDecide: boolean;
  /** Members by user id; new members by e-mail address. */
  readonly members: Map<string, Member> | undefined;
  /** API keys by `apiKeyIdentity`; new keys by the URN of their resource. */
  readonly apiKeys: Map<string, PlannedApiKey> | undefined;
  /** Trusted workloads by id. */
  readonly trustedWorkloads: Map<string, Workload> | undefined;
  /** The settings of the namespace; undefined if they could not be read. */
  settings: NamespaceSettings | undefined;
  /** The ids of key owners in the state, by the declared e-mail address in lower case. */
  readonly statedOwners: ReadonlyMap<string, string>;
  readonly #devices: Map<string, Device>;
  readonly #live: ReadonlyMap<string, Device>;
  /** A cache of {@link devices} by selector key. Undefined after a device's name or status changes. */
  #planned: ReadonlyMap<string, Device> | undefined;

  /** All devices, by uid. {@link changeDevice} and {@link removeDevice} change this map. */
  get devices(): ReadonlyMap<string, Device> {
    return this.#devices;
  }

  /** @param statedOwners the ids of key owners in the state, by the declared e-mail address in lower case */
  constructor(
    estate: Estate,
    now: Date,
    creatorRole: Role | undefined,
    statedOwners: ReadonlyMap<string, string> = new Map(),
  ) {
    const { policy, devices, members, apiKeys, trustedWorkloads, identity } = estate;
    this.estate = estate;
    this.statedOwners = statedOwners;
    this.settings = estate.settings;
    this.now = now;
    this.creatorRole = creatorRole;
    this.#devices = new Map(devices.map((device) => [device.uid, device]));
    this.keys = new Map(policy.keys.map((key) => [key.fingerprint, key]));
    this.rules = new Map(policy.rules.map((rule) => [rule.id, rule]));
    this.policies = identity && new Map(identity.policies.map((one) => [one.id, one]));
    this.serviceAccounts = identity && new Map(identity.serviceAccounts.map((one) => [one.id, one]));
    this.accessPoliciesDecide = identity?.decides ?? false;
    this.members = members && new Map(members.map((member) => [member.id || member.email, member]));
    this.apiKeys = apiKeys && new Map(apiKeys.map((key) => [apiKeyIdentity(key), key]));
    this.trustedWorkloads = trustedWorkloads && new Map(trustedWorkloads.map((one) => [one.id, one]));
    this.#live = devicesByKey(devices);
  }

  /**
   * Returns the id of the user with an e-mail address: of a present or planned member, of a member whom the plan removes,
   * or of a former member who owns keys. Undefined for another user.
   */
  userIdOf(address: string): string | undefined {
    const email = address.toLowerCase();
    const { estate, members } = this;
    const known = [...(members?.values() ?? []), ...(estate.members ?? [])];
    const member = known.find((one) => one.email.toLowerCase() === email && one.id !== "");
    return member?.id ?? estate.formerOwners.get(email) ?? this.statedOwners.get(email);
  }

  /** Returns the uid of the device that a selector matches, by its live data or by its planned name. */
  findUid(selector: string): string | undefined {
    const key = deviceKey(selector);
    const live = this.#live.get(key);
    if (live) return live.uid;
    this.#planned ??= devicesByKey([...this.#devices.values()]);
    return this.#planned.get(key)?.uid;
  }

  /** Returns the uid of the device that a selector matches. @throws UnpredictableError if no device matches */
  uidOf(selector: string): string {
    const uid = this.findUid(selector);
    if (uid === undefined) throw new UnpredictableError(`there is no device "${selector}" yet`);
    return uid;
  }

  /** The device with a uid. @throws UnpredictableError if the device no longer exists */
  device(uid: string): Device {
    const device = this.#devices.get(uid);
    if (!device) throw new UnpredictableError(`its device ${uid} no longer exists, or this plan removes it`);
    return device;
  }

  changeDevice(uid: string, change: Partial<Pick<Device, "name" | "tags" | "status">>): void {
    const device = this.#devices.get(uid);
    if (!device) return;
    this.#devices.set(uid, { ...device, ...change });
    if (change.name !== undefined || change.status !== undefined) this.#planned = undefined;
  }

  removeDevice(uid: string): void {
    this.#devices.delete(uid);
    this.#planned = undefined;
  }

  /** The objects that decide about logins. */
  policy(): NamespacePolicy {
    const { policies, serviceAccounts, members } = this;
    const { identity, enforcesExpiry } = this.estate;
    const rules =
      identity && policies && serviceAccounts && this.accessPoliciesDecide
        ? identityRules(
            { ...identity, policies: [...policies.values()], serviceAccounts: [...serviceAccounts.values()] },
            members?.values() ?? [],
          )
        : undefined;
    return {
      devices: acceptedDevices(this.#devices.values()),
      keys: [...this.keys.values()],
      rules: [...this.rules.values()],
      ...(enforcesExpiry && { members: members && Array.from(members.values(), policyMember) }),
      ...(rules && { identity: rules }),
    };
  }

  clear(): void {
    this.#planned = undefined;
    const { keys, rules, policies, serviceAccounts, members, apiKeys, trustedWorkloads } = this;
    const maps = [keys, rules, policies, serviceAccounts, members, apiKeys, trustedWorkloads];
    for (const map of [this.#devices, ...maps]) map?.clear();
    this.settings = undefined;
  }
}
