import type { AccessDevice } from "@gatehouse-access/sdk/policy";
import type { ResourceValues } from "../engine/index.ts";
import { definitionsByName } from "../resources/index.ts";
import { idWithin } from "../resources/values.ts";
import { type Device, deviceKey, devicesByKey } from "../service/listings.ts";
import type { Values } from "../values.ts";
import type { Draft } from "./draft.ts";
import { type Kind, listedBy } from "./kind.ts";
import type { HasObjects } from "./namespaceObjects.ts";
import type { LiveObject, Objects } from "./object.ts";
import { isHidden, outputOf, type PlannedStep, UnpredictableError } from "./plannedStep.ts";

const definition = definitionsByName.Device;

/** The state of a device, with its tags. */
export interface DeviceState {
  readonly tenant: string;
  readonly uid: string;
  readonly name: string;
  readonly mac: string;
  readonly status: Device["status"];
  readonly tags: readonly string[];
}

/** Returns the state of a device, with its tags. */
export const deviceState = ({ state }: LiveObject): DeviceState => state as unknown as DeviceState;

/** Name, status and tags of devices. Plans do not create devices, since devices enroll without a plan. */
export const device: Kind = {
  definition,
  keyOf: idWithin,
  reading: listedBy(definition, {
    what: "devices",
    missed: "no access can be evaluated",
    isRequired: true,
    async read(connection, tenant) {
      const { devices } = await connection.tenant(tenant);
      return {
        objects: (await devices.all()).map(({ uid, name, identity, status, tags, tagsDeclaredBy }) => ({
          id: `${tenant}/${uid}`,
          name,
          state: { tenant, uid, device: uid, name, mac: identity.mac.toLowerCase(), status, tags },
          ...(tagsDeclaredBy && { facts: { tagsDeclaredBy } }),
        })),
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
    keyOf: (before) => outputOf(before, "uid"),
    newKey: (draft, planned) => selectedDevice(draft, planned),
    create: (draft, planned, inputs) => settle(draft, selectedDevice(draft, planned), inputs),
    update: (draft, _planned, inputs, before) => settle(draft, outputOf(before, "uid"), inputs),
    remove(draft, _planned, before) {
      if (isRemoved(before)) draft.remove(definition, outputOf(before, "uid"));
    },
  },
  decides: { parts: (objects) => ({ devices: accessDevices(objects) }) },
  role: undefined,
  changes: undefined,
  linted: undefined,
  imported: undefined,
};

/** True if the deletion of a resource deletes its device. */
const isRemoved = ({ outputs }: ResourceValues): boolean => outputs.onDestroy === "remove";

/** The accepted devices, as a policy contains them. */
export const accessDevices = (objects: Iterable<LiveObject>): AccessDevice[] =>
  acceptedDevices(Array.from(objects, deviceState));

/** The accepted ones of some devices, as a policy contains them. */
export const acceptedDevices = (
  devices: readonly Pick<DeviceState, "uid" | "name" | "tags" | "status">[],
): AccessDevice[] =>
  devices.filter(({ status }) => status === "accepted").map(({ uid, name, tags }) => ({ uid, name, tags }));

/** Returns all devices of a namespace. */
export const devicesOf = (state: HasObjects): LiveObject[] => [...(state.of(definition)?.values() ?? [])];

/** Returns a device in the form in which listings find it. */
export const listedDevice = (
  object: LiveObject,
): Pick<Device, "uid" | "name" | "identity" | "status" | "tags"> => {
  const { uid, name, mac, status, tags } = deviceState(object);
  return { uid, name, identity: { mac }, status, tags: [...tags] };
};

/** The devices of lists of objects, by the keys of selectors. */
const bySelector = new WeakMap<Objects, ReadonlyMap<string, Device>>();

/** Returns the uid of the live device that a selector matches; undefined if there is none. */
export function uidSelected(devices: Objects | undefined, selector: string): string | undefined {
  if (!devices) return undefined;
  const known =
    bySelector.get(devices) ?? devicesByKey(Array.from(devices.values(), listedDevice) as Device[]);
  bySelector.set(devices, known);
  return known.get(deviceKey(selector))?.uid;
}

/** Returns the uid of the device that a selector matches, by its live data or by its planned name. */
export function findDevice(draft: Draft, selector: string): string | undefined {
  const live = uidSelected(draft.live.of(definition), selector);
  if (live !== undefined) return live;
  const key = deviceKey(selector);
  const known = planned.get(draft);
  const found = known?.byKey.get(key)?.uid;
  // Most changes leave a device with its name, so its entry stays right.
  if (found !== undefined && keysOf(draft, found).has(key)) return found;
  if (known?.changes === draft.changes) return undefined;
  const byKey = devicesByKey(devicesOf(draft).map(listedDevice) as Device[]);
  planned.set(draft, { changes: draft.changes, byKey });
  return byKey.get(key)?.uid;
}

/** Returns the keys of selectors of a planned device. */
function keysOf(draft: Draft, uid: string): ReadonlyMap<string, Device> {
  const object = draft.of(definition)?.get(uid);
  return devicesByKey(object ? ([listedDevice(object)] as Device[]) : []);
}

/** The planned devices of drafts, by the keys of selectors. */
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

/** Returns the device with a uid. @throws UnpredictableError if the device no longer exists */
export function existingDevice(draft: Draft, uid: string): DeviceState {
  const object = draft.of(definition)?.get(uid);
  if (!object) throw new UnpredictableError(`its device ${uid} no longer exists, or this plan removes it`);
  return deviceState(object);
}

/** Changes a device, if it exists. */
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
 * Accepts a device. A machine that enrolled again with a new key replaces its old device and keeps the name (rules
 * section 7).
 */
function accept(draft: Draft, uid: string): void {
  const mac = macOf(existingDevice(draft, uid));
  const former = devicesOf(draft)
    .map(deviceState)
    .find((other) => mac !== "" && other.uid !== uid && other.status === "accepted" && macOf(other) === mac);
  if (former) draft.remove(definition, former.uid);
  changeDevice(draft, uid, { status: "accepted", ...(former && { name: former.name }) });
}
