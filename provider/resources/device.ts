import { acceptedDevicesOf, ValidationError } from "@gatehouse-access/sdk";
import { devices as contract, dateTime, uid as uidSchema } from "@gatehouse-access/sdk/contract";
import type { AccessDevice } from "@gatehouse-access/sdk/policy";
import { z } from "zod";
import type { ResourceValues } from "../engine/index.ts";
import { defineResource } from "../model/defineResource.ts";
import { liveFacts } from "../model/definition.ts";
import type { Draft } from "../model/draft.ts";
import { optional, output, tenantInput } from "../model/fields.ts";
import { EXAMPLE_TENANT, EXAMPLE_UID, IdForm } from "../model/idForm.ts";
import { type Kind, listedBy, type QuotaCheck } from "../model/kind.ts";
import type { HasObjects, Replaceable } from "../model/namespaceObjects.ts";
import type { LiveObject, Objects } from "../model/object.ts";
import {
  firstTitles,
  isHidden,
  knownTexts,
  outputOf,
  type PlannedStep,
  UnpredictableError,
} from "../model/plannedStep.ts";
import { UnfinishedError } from "../model/unfinishedError.ts";
import { idWithin } from "../model/values.ts";
import { ResourceError, type ResourceFault, said } from "../resourceError.ts";
import type { TenantClient } from "../service/connection.ts";
import type { Device } from "../service/listings.ts";
import type { Values } from "../values.ts";
import { counted } from "../words.ts";
import {
  deviceInput,
  deviceKey,
  deviceOf,
  devices,
  devicesByKey,
  followDevice,
  idOfDevice,
  keysOfDevice,
  macOf as listedMac,
} from "./deviceSelector.ts";

const status = z.enum(["accepted", "rejected"]);

type Status = z.output<typeof status>;

const info = z.object({
  id: z.string().describe("The ID of the operating system."),
  prettyName: z.string().describe("The name of the operating system."),
  version: z.string().describe("The version of the agent."),
  arch: z.string().describe("The processor architecture."),
  platform: z.string().describe("The platform of the agent, such as `native` or `docker`."),
});

const ids = new IdForm("Device", {
  tenant: EXAMPLE_TENANT,
  uid: EXAMPLE_UID,
});

const definition = defineResource({
  name: "Device",
  description:
    "The name and status of an enrolled device. Devices enroll themselves: this resource updates an existing device and does not create one.",
  id: ids,
  object: { kind: "device" },
  inputs: {
    tenant: tenantInput,
    device: deviceInput,
    name: optional(contract.deviceName, {
      description:
        "The name of the device. Must be unique among the accepted devices of the namespace. Defaults to the current name.",
      canonical: (name) => name.toLowerCase(),
    }),
    status: optional(status, {
      description:
        "The status of the device. Must be `accepted` or `rejected`, and cannot change from `accepted` to `rejected`. Defaults to the current status.",
    }),
    onDestroy: optional(z.enum(["keep", "remove"]), {
      description: "The action on the device when the resource is destroyed. Must be `keep` or `remove`.",
      notDecisive: "a later deletion uses the value in the state",
      default: "keep",
      isLocal: true,
    }),
  },
  outputs: {
    uid: output(uidSchema, { description: "The UID of the device." }),
    mac: output(z.string(), { description: "The MAC address of the device." }),
    info: output(info, {
      description: "Information about the machine, as the agent reports it.",
      volatile: true,
    }),
    online: output(z.boolean(), {
      description:
        "Whether the device reported within the last two minutes. The state stores this value at creation; a refresh updates it only if an input has also changed.",
      volatile: true,
    }),
    lastSeen: output(dateTime, {
      description:
        "The time when the device last reported to the service. The state stores this value at creation; a refresh updates it only if an input has also changed.",
      volatile: true,
    }),
    createdAt: output(dateTime, { description: "The time when the device enrolled." }),
  },
  identity: {
    fields: ["tenant", "device"],
    ofInputs: ({ tenant, device }) => [{ key: `device ${tenant ?? ""} ${device}`, property: "device" }],
  },

  named: idOfDevice,

  async create(connection, inputs, origin) {
    const opened = await connection.tenant(inputs.tenant);
    const found = await deviceOf(opened, inputs.device, "Device");
    const id = `${opened.tenant}/${found.uid}`;
    origin.claim(id);
    const settings = { device: inputs.device, onDestroy: inputs.onDestroy ?? "keep" };
    try {
      return { id, state: toState(opened.tenant, settings, await applyTo(opened, found, inputs)) };
    } catch (error) {
      // The name and the status are set by separate requests. If the second request fails, the first may have
      // succeeded.
      throw new UnfinishedError(id, toState(opened.tenant, settings, found), error, true);
    }
  },

  async read(connection, id, state) {
    const { tenant, uid } = ids.split(id);
    const found = await followDevice(await connection.tenant(tenant), uid, state.device);
    if (!found) return undefined;
    const settings = { device: found.selector, onDestroy: state.onDestroy ?? "keep" };
    return {
      id: `${tenant}/${found.device.uid}`,
      state: toState(tenant, settings, found.device),
      live: liveFacts(found.device),
    };
  },

  async update(connection, id, state, inputs) {
    const { tenant, uid } = ids.split(id);
    const opened = await connection.tenant(tenant);
    const { mac } = state;
    const before = { uid, name: state.name, status: state.status, identity: { mac } };
    const { name, status } = await applyTo(opened, before, inputs);
    return { ...state, name, status, device: inputs.device, onDestroy: inputs.onDestroy ?? "keep" };
  },

  async delete(connection, id, state) {
    if (state.onDestroy !== "remove") return;
    const { tenant, uid } = ids.split(id);
    const { client, listing } = await connection.tenant(tenant);
    await listing(devices).remove(uid, client, (witnessed) => witnessed.deleteDevice({ params: { uid } }));
  },
});

interface Declared {
  readonly name?: string | undefined;
  readonly status?: Status | undefined;
}

type Named = Pick<Device, "uid" | "name" | "identity"> & { readonly status: string };

/**
 * Sets the declared name and status of a device. Sends at most one request for the name, and at most one for the
 * status. Later reads in the same run return the new name and status.
 */
async function applyTo<D extends Named>(
  { client, listing }: TenantClient,
  found: D,
  { name = found.name, status = found.status as Status }: Declared,
): Promise<D & { status: Status }> {
  const params = { uid: found.uid };
  if (name !== found.name) {
    await client.updateDevice({ params, body: { name } });
    listing(devices).change(found.uid, { name }, keysOfAccepted({ ...found, name }));
  }
  if (status !== found.status) {
    if (status === "accepted") await client.acceptDevice({ params });
    else await reject(client, found);
    listing(devices).change(found.uid, { status }, keysOfAccepted({ ...found, name, status }));
  }
  return { ...found, name, status };
}

/**
 * Returns the lookup keys with which a listing finds this device even if other devices have the same keys. Only an
 * accepted device has such keys.
 */
const keysOfAccepted = (device: Named): string[] =>
  device.status === "accepted" ? keysOfDevice(device).slice(1) : [];

async function reject(client: TenantClient["client"], found: { uid: string; status: string }): Promise<void> {
  try {
    await client.updateDeviceStatus({ params: { uid: found.uid, status: "reject" } });
  } catch (error) {
    if (!(error instanceof ValidationError) || found.status !== "accepted") throw error;
    const fault: ResourceFault = {
      code: "unsupported_change",
      field: ["status"],
      detail: said`Cannot reject the device: it is already accepted`,
      remedy: said`remove the device instead`,
    };
    throw new ResourceError("Device", fault, { cause: error });
  }
}

function toState(tenant: string, settings: { device: string; onDestroy: "keep" | "remove" }, found: Device) {
  return {
    tenant,
    ...settings,
    name: found.name,
    // The service also has statuses that no program can declare. A diff therefore reports a difference between such a
    // status and every declared status.
    status: found.status as Status,
    uid: found.uid,
    mac: found.identity.mac.toLowerCase(),
    info: found.info,
    online: found.online,
    lastSeen: found.lastSeen,
    createdAt: found.createdAt,
  };
}

/** The values of a device in a {@link LiveObject}, including its tags. */
export interface DeviceState {
  readonly tenant: string;
  readonly uid: string;
  readonly name: string;
  readonly mac: string;
  readonly status: Device["status"];
  readonly tags: readonly string[];
}

/** Returns the values of a device, including its tags. */
export const deviceState = ({ state }: LiveObject): DeviceState => state as unknown as DeviceState;

/** The names, statuses and tags of devices. Plans do not create devices, because devices enroll without a plan. */
export const device: Kind = {
  definition,
  keyOf: idWithin,
  reading: listedBy(definition, {
    what: "devices",
    missed: "no access can be evaluated",
    isRequired: true,
    isEnrolled: true,
    async read(connection, tenant) {
      const { listing } = await connection.tenant(tenant);
      return {
        objects: (await listing(devices).all()).map(
          ({ uid, name, identity, status, tags, tagsDeclaredBy }) => ({
            id: `${tenant}/${uid}`,
            name,
            state: { tenant, uid, device: uid, name, mac: identity.mac.toLowerCase(), status, tags },
            ...(tagsDeclaredBy && { facts: { tagsDeclaredBy } }),
          }),
        ),
      };
    },
  }),
  parts: undefined,
  watched: undefined,
  operations: {
    create: ["updateDevice", "acceptDevice"],
    update: ["updateDevice", "updateDeviceStatus"],
    delete: ["deleteDevice"],
  },
  plan: {
    stage: "names",
    names: "devices",
    deletesObject: isRemoved,
    keyOf: (before) => outputOf(before, "uid"),
    newKey: (draft, planned) => selectedDevice(draft, planned),
    create: (draft, planned, inputs) => settle(draft, selectedDevice(draft, planned), inputs),
    update: (draft, _planned, inputs, before) => settle(draft, outputOf(before, "uid"), inputs),
    remove(draft, _planned, before) {
      if (isRemoved(before)) draft.remove(definition, outputOf(before, "uid"));
    },
  },
  quota: fullNamespace,
  decides: { parts: (objects) => ({ devices: accessDevices(objects) }) },
  role: undefined,
  changes: undefined,
  linted: undefined,
  imported: undefined,
};

/** Returns true if the deletion of a resource also deletes its device. */
function isRemoved({ outputs }: ResourceValues): boolean {
  return outputs.onDestroy === "remove";
}

/** Returns a sentence if the plan accepts more devices than the quota of the namespace allows. */
async function fullNamespace({ opened, namespace, steps }: QuotaCheck): Promise<string[]> {
  const { listing, tenant } = opened;
  const enrolled = listing(devices);
  const { maxDevices } = namespace;
  if (!(maxDevices > 0)) return [];
  const accepting = steps.filter(({ after }) => after?.inputs.status === "accepted");
  const selectors = accepting.flatMap(({ after }) => knownTexts(after?.inputs.device));
  const selected = await Promise.all(
    selectors.map((selector) => enrolled.find(deviceKey(selector.toLowerCase()))),
  );
  const taken = await Promise.all(
    selected.map((device) => device && enrolled.find(`mac ${listedMac(device)}`)),
  );
  // If a machine has enrolled again, its new device replaces the accepted device with the same MAC address. The new
  // device then needs no additional quota.
  const added = selected.filter(
    (device, index) => device && device.status !== "accepted" && taken[index]?.status !== "accepted",
  ).length;
  const free = maxDevices - (acceptedDevicesOf(namespace) ?? 0);
  if (added <= free) return [];
  return [
    `${firstTitles(accepting.map(({ title }) => title))}: the plan accepts ${counted(added, "device")}, and the namespace ${tenant} has ${Math.max(free, 0)} of ${maxDevices} left; remove devices, or raise the quota`,
  ];
}

/** Returns the accepted devices among some objects, in the form that policies contain. */
export const accessDevices = (objects: Iterable<LiveObject>): AccessDevice[] =>
  acceptedDevices(Array.from(objects, deviceState));

/** Returns the accepted devices among some devices, in the form that policies contain. */
export const acceptedDevices = (
  devices: readonly Pick<DeviceState, "uid" | "name" | "tags" | "status">[],
): AccessDevice[] =>
  devices.filter(({ status }) => status === "accepted").map(({ uid, name, tags }) => ({ uid, name, tags }));

/** Returns all devices of a namespace. */
export const devicesOf = (state: HasObjects): LiveObject[] => [...(state.of(definition)?.values() ?? [])];

/** Converts a device to the form that listings use for lookups. */
export const listedDevice = (
  object: LiveObject,
): Pick<Device, "uid" | "name" | "identity" | "status" | "tags"> => {
  const { uid, name, mac, status, tags } = deviceState(object);
  return { uid, name, identity: { mac }, status, tags: [...tags] };
};

/** A cache of device indexes for {@link uidSelected}. It contains one index for each map of objects, by lookup key. */
const bySelector = new WeakMap<Objects, ReadonlyMap<string, Device>>();

/** Returns the uid of the live device that a selector matches, or undefined if no device matches. */
export function uidSelected(state: HasObjects, selector: string): string | undefined {
  const devices = state.of(definition);
  if (!devices) return undefined;
  const known =
    bySelector.get(devices) ?? devicesByKey(Array.from(devices.values(), listedDevice) as Device[]);
  bySelector.set(devices, known);
  return known.get(deviceKey(selector))?.uid;
}

/**
 * Returns the uid of the device that a selector matches. The selector can match a live device, or the name that the
 * plan gives to a device.
 */
function findDevice(draft: Draft, selector: string): string | undefined {
  const live = uidSelected(draft.live, selector);
  if (live !== undefined) return live;
  const key = deviceKey(selector);
  const known = planned.get(draft);
  const found = known?.byKey.get(key)?.uid;
  // Most changes do not rename a device, so the cached device usually still has the lookup key.
  if (found !== undefined && keysOf(draft, found).has(key)) return found;
  if (known?.changes === draft.changes) return undefined;
  const byKey = devicesByKey(devicesOf(draft).map(listedDevice) as Device[]);
  planned.set(draft, { changes: draft.changes, byKey });
  return byKey.get(key)?.uid;
}

/** Returns true if a selector that is not a uid matches a device that is not accepted yet. */
export function isPendingSelected(draft: Draft, selector: string): boolean {
  const uid = findDevice(draft, selector.toLowerCase());
  const device = uid === undefined ? undefined : draft.of(definition)?.get(uid);
  return device?.state.status === "pending" && uid !== selector;
}

/** The drift of a device that a resource manages: the differences between the state and the service. */
interface DeviceDrift {
  /** The id of the resource, which contains the uid of the device. */
  readonly id?: string;
  readonly fields: readonly { readonly path: string; readonly old?: unknown }[];
}

/** Returns a copy of the namespace in which the devices have their names and statuses from before the drift. */
export function withEarlierDevices<S extends HasObjects & Replaceable<S>>(
  state: S,
  drifted: readonly DeviceDrift[],
): S {
  const devices = state.of(definition);
  const changed = new Map<string, LiveObject>();
  for (const { fields, id = "" } of drifted) {
    const old = (path: string) => fields.find((field) => field.path === path)?.old;
    const [name, status] = [old("deviceName"), old("deviceStatus")];
    const [uid = ""] = idWithin({ id }).split("/");
    const object = changed.get(uid) ?? devices?.get(uid);
    if (!object || (name ?? status) === undefined) continue;
    const today = deviceState(object);
    const earlier = {
      name: typeof name === "string" ? name : today.name,
      status: typeof status === "string" ? status : today.status,
    };
    changed.set(uid, { ...object, name: earlier.name, state: { ...object.state, ...earlier } });
  }
  if (changed.size === 0 || !devices) return state;
  return state.withObjects(definition, new Map([...devices, ...changed]));
}

/** Returns an index that contains only this planned device. Its map keys are the lookup keys of the device. */
function keysOf(draft: Draft, uid: string): ReadonlyMap<string, Device> {
  const object = draft.of(definition)?.get(uid);
  return devicesByKey(object ? ([listedDevice(object)] as Device[]) : []);
}

/**
 * A cache of device indexes for {@link findDevice}. It contains one index of the planned devices for each draft, by
 * lookup key.
 */
const planned = new WeakMap<
  Draft,
  { readonly changes: number; readonly byKey: ReadonlyMap<string, Device> }
>();

/**
 * Returns the uid of the device that a resource selects.
 * @throws UnpredictableError if no device matches the selector
 */
export function selectedDevice(draft: Draft, { after }: PlannedStep): string {
  const selector = String(after?.inputs.device).toLowerCase();
  const uid = isHidden(after?.inputs.device) ? undefined : findDevice(draft, selector);
  if (uid === undefined) throw new UnpredictableError(`there is no device "${selector}" yet`);
  return uid;
}

/**
 * Returns the device with this uid.
 * @throws UnpredictableError if the device no longer exists
 */
export function existingDevice(draft: Draft, uid: string): DeviceState {
  const object = draft.of(definition)?.get(uid);
  if (!object) throw new UnpredictableError(`its device ${uid} no longer exists, or this plan removes it`);
  return deviceState(object);
}

/** Changes a device if it exists. */
export function changeDevice(
  draft: Draft,
  uid: string,
  change: Partial<Pick<DeviceState, "name" | "tags" | "status">>,
): void {
  const object = draft.of(definition)?.get(uid);
  if (object) draft.put(definition, uid, { ...object.state, ...change });
}

function settle(draft: Draft, uid: string, { name, status }: Values): void {
  const today = existingDevice(draft, uid).status;
  if (typeof name === "string") changeDevice(draft, uid, { name });
  if (status === "accepted" && today !== "accepted") accept(draft, uid);
  if (status === "rejected" && today === "accepted")
    throw new UnpredictableError("it rejects an accepted device, which the service does not allow");
  if (status === "rejected") changeDevice(draft, uid, { status });
}

const macOf = ({ mac }: DeviceState): string => mac.replaceAll("-", ":");

/**
 * Accepts a device. If a machine has enrolled again with a new key, the new device replaces the old device and keeps
 * its name (rules section 7).
 */
function accept(draft: Draft, uid: string): void {
  const mac = macOf(existingDevice(draft, uid));
  const former = devicesOf(draft)
    .map(deviceState)
    .find((other) => mac !== "" && other.uid !== uid && other.status === "accepted" && macOf(other) === mac);
  if (former) draft.remove(definition, former.uid);
  changeDevice(draft, uid, { status: "accepted", ...(former && { name: former.name }) });
}
