import type { Declaration } from "@gatehouse-access/sdk/contract";
import { deciderOf, type NamespacePolicy } from "@gatehouse-access/sdk/policy";
import { deviceState as selectedState, selectorsOf } from "../resources/deviceSelector.ts";
import { definitionsByName } from "../resources/index.ts";
import { idWithin } from "../resources/values.ts";
import type { Device } from "../service/listings.ts";
import {
  changeDevice,
  deviceState,
  devicesOf,
  existingDevice,
  listedDevice,
  selectedDevice,
} from "./device.ts";
import { removeTags } from "./deviceTags.ts";
import type { Kind } from "./kind.ts";
import type { ObjectsOf } from "./namespaceObjects.ts";
import type { LiveObject } from "./object.ts";
import { outputOf } from "./plannedStep.ts";

const definition = definitionsByName.DeviceTagAttachment;

/**
 * One tag of a device. An update only changes the selector, and the new selector still matches the same device, so the
 * object does not change. Other changes replace the resource.
 */
export const deviceTagAttachment: Kind = {
  definition,
  keyOf: idWithin,
  reading: undefined,
  parts: {
    whole: definitionsByName.Device,
    of: attachmentsIn,
    wholeOf: (part) => idWithin(part).split("/")[0] ?? "",
    without(whole, parts) {
      const removed = new Set(parts.map((part) => idWithin(part).split("/")[1]));
      const tags = deviceState(whole).tags.filter((tag) => !removed.has(tag));
      return { ...whole, state: { ...whole.state, tags } };
    },
  },
  watched: {},
  operations: { create: ["createDeviceTag"], update: ["createDeviceTag"], delete: ["deleteDeviceTag"] },
  plan: {
    stage: "objects",
    keyOf: (before) => outputOf(before, "uid"),
    newKey: (draft, planned, { tag }) => `${selectedDevice(draft, planned)}/${tag}`,
    create(draft, planned, inputs) {
      const { uid, tags } = existingDevice(draft, selectedDevice(draft, planned));
      const tag = String(inputs.tag);
      if (!tags.includes(tag)) changeDevice(draft, uid, { tags: [...tags, tag] });
    },
    update: () => undefined,
    remove(draft, { step }) {
      const [, uid = "", tag = ""] = step.id?.split("/") ?? [];
      removeTags(draft, uid, (other) => other === tag);
    },
  },
  decides: {
    // The devices contain the tags.
    parts: () => ({}),
    isDeciding: (object, policy) => tagsInFilters(policy).has(idWithin(object).split("/")[1] ?? ""),
  },
  role: undefined,
  changes: undefined,
  linted: undefined,
  imported: undefined,
};

/** The tags in the filters of policies. */
const filterTags = new WeakMap<NamespacePolicy, ReadonlySet<string>>();

/** Returns the tags in the filters of the objects that decide about logins. A filter with a pattern ignores its tags. */
function tagsInFilters(policy: NamespacePolicy): ReadonlySet<string> {
  const known = filterTags.get(policy);
  if (known) return known;
  const tags = new Set(
    deciderOf(policy).objects.flatMap(({ filter: { hostname, tags } }) => (hostname ? [] : (tags ?? []))),
  );
  filterTags.set(policy, tags);
  return tags;
}

/** Returns each tag of each device as an object. */
function attachmentsIn(of: ObjectsOf): LiveObject[] {
  const objects = new Map(devicesOf({ of }).map((object) => [deviceState(object).uid, object]));
  const devices = Array.from(objects.values(), listedDevice) as Device[];
  // A name or MAC address selects one of all devices, so the selectors depend on the devices without tags too.
  return selectorsOf(devices).flatMap(({ device, selector }) => {
    const whole = objects.get(device.uid);
    const { tenant } = whole ? deviceState(whole) : { tenant: "" };
    const declaredBy = whole?.facts?.tagsDeclaredBy as Declaration | undefined;
    return device.tags.map((tag) => ({
      definition,
      id: `${tenant}/${device.uid}/${tag}`,
      name: `${tag} on ${device.name}`,
      state: { ...selectedState(tenant, selector, device), tag },
      declaredBy,
    }));
  });
}
