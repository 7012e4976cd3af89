import type { Role } from "@gatehouse-access/sdk/contract";
import type { AccessKey, AccessPolicy, AccessRule } from "@gatehouse-access/sdk/policy";
import type { ResourceValues, Shown } from "../../engine/index.ts";
import { acceptedDevices, type Estate, type Member } from "../../estate/namespaceState.ts";
import type { InputValues, ResourceDefinition } from "../../resources/definition.ts";
import { canonicalInputs } from "../../resources/values.ts";
import { type ApiKey, apiKeyIdentity, type Device, deviceKey, devicesByKey } from "../../service/listings.ts";
import type { PlannedStep } from "../steps.ts";

/** An API key as it will be. */
export interface PlannedApiKey extends Omit<ApiKey, "role"> {
  /** Undefined: the role of its maker, which is not known. */
  readonly role: Role | undefined;
}

/**
 * Nobody can tell before the change is made what a resource will be. The message follows on the title of the resource.
 */
export class CannotTell extends Error {
  override readonly name = "CannotTell";
}

/** The message where an object that a resource changes is no longer on the service. */
export const GONE = "it changes an object that is gone; a refresh plans it anew";

/** What the steps of one resource do to a namespace. Each of the functions may throw {@link CannotTell}. */
export interface Kind {
  /** Inputs without which nobody can tell what the object will be. */
  readonly decisive: readonly string[];
  /**
   * The id of the object that a new resource will have, without the namespace's; undefined for an object that the
   * service is still to make.
   */
  idOf(draft: Draft, step: PlannedStep, after: ResourceValues): string | undefined;
  /** True where an object that the state has is on the service. */
  isLive(draft: Draft, id: string): boolean;
  /** @param isClaimed true where a resource of the program claims this key for itself alone */
  remove(draft: Draft, step: PlannedStep, before: ResourceValues, isClaimed: (key: string) => boolean): void;
  bring(draft: Draft, step: PlannedStep, after: ResourceValues): void;
  change(draft: Draft, step: PlannedStep, before: ResourceValues, after: ResourceValues): void;
}

/** A namespace while the steps of a plan are carried out on paper. */
export class Draft {
  /** The namespace as it is. */
  readonly estate: Estate;
  /** When the plan is carried out. */
  readonly now: Date;
  /** The role of the user or API key that carries it out; undefined where it is not known. */
  readonly makerRole: Role | undefined;
  /** By fingerprint. */
  readonly keys: Map<string, AccessKey>;
  /** By id. */
  readonly rules: Map<string, AccessRule>;
  /** By user id; new members by e-mail address. */
  readonly members: Map<string, Member> | undefined;
  /** By `apiKeyIdentity`; new ones by the resource's urn. */
  readonly apiKeys: Map<string, PlannedApiKey> | undefined;
  readonly #devices: Map<string, Device>;
  readonly #live: ReadonlyMap<string, Device>;
  /** The devices as they will be, by the names in a listing; undefined where those names have changed since. */
  #planned: ReadonlyMap<string, Device> | undefined;

  constructor(estate: Estate, now: Date, makerRole: Role | undefined) {
    const { policy, devices, members, apiKeys } = estate;
    this.estate = estate;
    this.now = now;
    this.makerRole = makerRole;
    this.#devices = new Map(devices.map((device) => [device.uid, device]));
    this.keys = new Map(policy.keys.map((key) => [key.fingerprint, key]));
    this.rules = new Map(policy.rules.map((rule) => [rule.id, rule]));
    this.members = members && new Map(members.map((member) => [member.id, member]));
    this.apiKeys = apiKeys && new Map(apiKeys.map((key) => [apiKeyIdentity(key), key]));
    this.#live = devicesByKey(devices);
  }

  /** All devices, also those that are not accepted. By uid. */
  get devices(): ReadonlyMap<string, Device> {
    return this.#devices;
  }

  /**
   * The uid of the device that a selector means today, or by its planned name.
   * @throws CannotTell where there is none
   */
  uidOf(selector: string): string {
    const uid = this.findUid(selector);
    if (uid === undefined) throw new CannotTell(`there is no device "${selector}" yet`);
    return uid;
  }

  /** The same; undefined where there is none. */
  findUid(selector: string): string | undefined {
    const key = deviceKey(selector);
    const live = this.#live.get(key);
    if (live) return live.uid;
    this.#planned ??= devicesByKey([...this.#devices.values()]);
    return this.#planned.get(key)?.uid;
  }

  /** @throws CannotTell where the device is gone, or this change removes it */
  device(uid: string): Device {
    const device = this.devices.get(uid);
    if (!device) throw new CannotTell(`its device ${uid} is gone, or this change removes it`);
    return device;
  }

  /** Changes a device, if it is there. */
  changeDevice(uid: string, change: Partial<Pick<Device, "name" | "tags" | "status">>): void {
    const device = this.#devices.get(uid);
    if (!device) return;
    this.#devices.set(uid, { ...device, ...change });
    if (change.name !== undefined || change.status !== undefined) this.#planned = undefined;
  }

  /** Removes a device, if it is there. */
  removeDevice(uid: string): void {
    this.#devices.delete(uid);
    this.#planned = undefined;
  }

  policy(): AccessPolicy {
    return {
      devices: acceptedDevices(this.devices.values()),
      keys: [...this.keys.values()],
      rules: [...this.rules.values()],
    };
  }

  /** Removes everything, as the namespace itself is deleted. */
  clear(): void {
    this.#planned = undefined;
    for (const map of [this.#devices, this.keys, this.rules, this.members, this.apiKeys]) map?.clear();
  }
}

/** The inputs of a resource as the provider checked them, in their canonical form. Those that decide must be known. */
export function inputsOf<I extends ResourceDefinition["inputs"]>(
  definition: Pick<ResourceDefinition<I>, "inputs">,
  { inputs }: ResourceValues,
): InputValues<I> {
  return canonicalInputs(definition.inputs, inputs) as InputValues<I>;
}

/** An output that the state has, as text; empty where it is none. */
export const outputOf = ({ outputs }: ResourceValues, name: string): string => {
  const value: Shown | undefined = outputs[name];
  return typeof value === "string" ? value : "";
};
