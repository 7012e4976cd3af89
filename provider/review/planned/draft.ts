import type { Role } from "@gatehouse-access/sdk/contract";
import type { AccessDevice, AccessKey, AccessPolicy, AccessRule } from "@gatehouse-access/sdk/policy";
import type { ResourceValues, Shown } from "../../engine/index.ts";
import type { InputValues, ResourceDefinition } from "../../resources/definition.ts";
import { apiKeyIdentity, type Device, deviceKey } from "../../resources/listings.ts";
import { canonicalInputs } from "../../resources/values.ts";
import { accessDevice, type Estate } from "../estate.ts";

/** A member as he will be. */
export interface PlannedMember {
  /** Empty of one who comes: the service knows it. */
  readonly userId: string;
  readonly email: string;
  readonly role: Role;
  readonly status: "accepted" | "pending";
}

/** An API key as it will be. */
export interface PlannedApiKey {
  /** Of one whose name is generated, the resource's name and "(new)". */
  readonly name: string;
  /** Undefined: what its maker may. */
  readonly role: Role | undefined;
  /** As the service lists it: seconds since 1970, -1 for never. */
  readonly expiresIn: number;
  /** When it was made; of one that comes, now. */
  readonly createdAt: string;
  /** Its name today; undefined of one that comes. */
  readonly was: string | undefined;
}

/** What stops the plan of one resource: nobody can tell what it will be. The message follows on the resource's title. */
export class CannotTell extends Error {
  override readonly name = "CannotTell";
}

/** The message where the service has no longer what a resource changes. */
export const GONE = "it changes an object that is gone; a refresh plans it anew";

/** A namespace while the steps of a plan are carried out on paper. */
export class Draft {
  readonly estate: Estate;
  /** When the plan is carried out. */
  readonly now: Date;
  /** By uid; also those that are not accepted. */
  readonly devices: Map<string, Device>;
  readonly keys: Map<string, AccessKey>;
  readonly rules: Map<string, AccessRule>;
  /** By user id, of those who come by e-mail address. */
  readonly members: Map<string, PlannedMember> | undefined;
  /** By what never changes about them; of those that come, by the resource's urn. */
  readonly apiKeys: Map<string, PlannedApiKey> | undefined;
  readonly #live: ReadonlyMap<string, Device>;

  constructor(estate: Estate, now: Date) {
    const { policy, devices, members, apiKeys } = estate;
    this.estate = estate;
    this.now = now;
    this.devices = new Map(devices.map((device) => [device.uid, device]));
    this.keys = new Map(policy.keys.map((key) => [key.fingerprint, key]));
    this.rules = new Map(policy.rules.map((rule) => [rule.id, rule]));
    this.members =
      members &&
      new Map(members.map(({ id, email, role, status }) => [id, { userId: id, email, role, status }]));
    this.apiKeys =
      apiKeys &&
      new Map(
        apiKeys.map((key) => {
          const { name, role, expiresIn, createdAt } = key;
          return [apiKeyIdentity(key), { name, role, expiresIn, createdAt, was: name }];
        }),
      );
    this.#live = devicesByKey(devices);
  }

  /**
   * The uid of the device that a selector means today, or by its planned name.
   * @throws CannotTell
   */
  uidOf(selector: string): string {
    const key = deviceKey(selector);
    const uid = (this.#live.get(key) ?? devicesByKey([...this.devices.values()]).get(key))?.uid;
    if (uid === undefined) throw new CannotTell(`there is no device "${selector}" yet`);
    return uid;
  }

  /** @throws CannotTell where the device is gone, or this change removes it */
  device(uid: string): Device {
    const device = this.devices.get(uid);
    if (!device) throw new CannotTell(`its device ${uid} is gone, or this change removes it`);
    return device;
  }

  /** Changes a device that is there. */
  changeDevice(uid: string, change: Partial<Pick<Device, "name" | "tags" | "status">>): void {
    const device = this.devices.get(uid);
    if (device) this.devices.set(uid, { ...device, ...change });
  }

  policy(): AccessPolicy {
    const accepted = [...this.devices.values()].filter(({ status }) => status === "accepted");
    return {
      devices: accepted.map((device): AccessDevice => accessDevice(device)),
      keys: [...this.keys.values()],
      rules: [...this.rules.values()],
    };
  }

  /** Of a namespace that is deleted. */
  clear(): void {
    for (const map of [this.devices, this.keys, this.rules, this.members, this.apiKeys]) map?.clear();
  }
}

/**
 * Devices by uid, MAC address and name (`deviceKey`). Of several of one name or MAC address the accepted one is meant,
 * or the first: as the provider finds them.
 */
export function devicesByKey(devices: readonly Device[]): ReadonlyMap<string, Device> {
  const found = new Map<string, Device>();
  for (const device of devices) {
    for (const key of [device.uid, deviceKey(macOf(device)), deviceKey(device.name.toLowerCase())]) {
      const known = found.get(key);
      const isBetter = known?.status !== "accepted" && device.status === "accepted";
      if (!known || isBetter) found.set(key, device);
    }
  }
  return found;
}

/** In the form in which they are compared. */
export const macOf = ({ identity: { mac } }: Device): string => mac.toLowerCase().replaceAll("-", ":");

/** The inputs as the provider checked them, in their canonical form; those that decide must be known. */
export function inputsOf<I extends ResourceDefinition["inputs"]>(
  definition: Pick<ResourceDefinition<I>, "inputs">,
  { inputs }: ResourceValues,
): InputValues<I> {
  return canonicalInputs(definition.inputs, inputs) as InputValues<I>;
}

/** What the state holds as an output, as text. */
export const outputOf = ({ outputs }: ResourceValues, name: string): string => textOf(outputs[name]);

const textOf = (value: Shown | undefined): string => (typeof value === "string" ? value : "");
