import { PermissionError } from "@gatehouse-access/sdk";
import type { Declaration } from "@gatehouse-access/sdk/contract";
import { tag as tagSchema } from "@gatehouse-access/sdk/contract";
import { deciderOf, type NamespacePolicy } from "@gatehouse-access/sdk/policy";
import { defineResource } from "../model/defineResource.ts";
import { listed, type Origin } from "../model/definition.ts";
import { required, tenantInput } from "../model/fields.ts";
import { EXAMPLE_TENANT, EXAMPLE_UID, IdForm } from "../model/idForm.ts";
import type { Kind } from "../model/kind.ts";
import type { ObjectsOf } from "../model/namespaceObjects.ts";
import type { LiveObject } from "../model/object.ts";
import { outputOf } from "../model/plannedStep.ts";
import { idWithin } from "../model/values.ts";
import type { TenantClient } from "../service/connection.ts";
import type { Device } from "../service/listings.ts";
import {
  changeDevice,
  device,
  deviceState,
  devicesOf,
  existingDevice,
  listedDevice,
  selectedDevice,
} from "./device.ts";
import {
  deviceInput,
  deviceOf,
  deviceOutputs,
  devices,
  deviceValues,
  followDevice,
  idOfDevice,
  pendingWarning,
  selectorsOf,
} from "./deviceSelector.ts";
import { claimOfTag, deleteTags, removeTags } from "./deviceTags.ts";

const ids = new IdForm("DeviceTagAttachment", {
  tenant: EXAMPLE_TENANT,
  uid: EXAMPLE_UID,
  tag: "edge",
});

const definition = defineResource({
  name: "DeviceTagAttachment",
  description:
    "One tag of a device. The resource does not change other tags of the device. Do not use this resource together with `DeviceTags` on the same device.",
  id: ids,
  object: {
    kind: "deviceTags",
    id: (id) => ids.split(id).uid,
    isPart: (id, { before, after }) => hasTag(after, ids.split(id).tag) && !hasTag(before, ids.split(id).tag),
  },
  inputs: {
    tenant: tenantInput,
    device: deviceInput,
    tag: required(tagSchema, {
      description: "The name of the tag. Must contain 3 to 255 letters and digits.",
      replaces: true,
    }),
  },
  outputs: deviceOutputs,
  tags: { gives: "tag" },
  identity: {
    fields: ["tenant", "device", "tag"],
    ofInputs: ({ tenant, device, tag }) => [
      { key: `tag of ${tenant ?? ""} ${device} ${tag}`, property: "tag" },
      { key: `tags of ${tenant ?? ""} ${device}`, property: "device", shared: true },
    ],
    ofId: (id) => [
      { key: claimOfTag(id), property: "tag" },
      { key: `tags of ${id.slice(0, id.lastIndexOf("/"))}`, property: "device", shared: true },
    ],
  },

  async find(connection, inputs) {
    const opened = await connection.tenant(inputs.tenant);
    const device = await deviceOf(opened, inputs.device, "DeviceTagAttachment");
    return device.tags.includes(inputs.tag)
      ? existing(opened.tenant, inputs.device, device, inputs.tag)
      : undefined;
  },

  async list(connection, tenant) {
    const { listing } = await connection.tenant(tenant);
    return selectorsOf(await listing(devices).all()).flatMap(({ device, selector }) =>
      device.tags.map((tag) => {
        const { id, state } = existing(tenant, selector, device, tag);
        return listed(id, `${tag} on ${device.name}`, state, { declaredBy: device.tagsDeclaredBy });
      }),
    );
  },

  warning: pendingWarning,

  // `name` has the form `device/tag`.
  async named(connection, tenant, name) {
    const slash = name.lastIndexOf("/");
    const device = await idOfDevice(connection, tenant, name.slice(0, Math.max(0, slash)));
    return slash > 0 && device ? `${device}/${name.slice(slash + 1)}` : undefined;
  },

  async create(connection, inputs, origin) {
    const opened = await connection.tenant(inputs.tenant);
    const device = await deviceOf(opened, inputs.device, "DeviceTagAttachment");
    const created = existing(opened.tenant, inputs.device, device, inputs.tag);
    origin.claim(created.id);
    if (wasRenamed(device, inputs.tag, origin)) return created;
    await opened.tagWork.during(() => attach(opened, device.uid, inputs.tag, origin));
    opened.listing(devices).put({ ...device, tags: [...device.tags, inputs.tag] });
    return created;
  },

  async read(connection, id, state) {
    const { tenant, uid, tag } = ids.split(id);
    const found = await followDevice(await connection.tenant(tenant), uid, state.device);
    return found?.device.tags.includes(tag) ? existing(tenant, found.selector, found.device, tag) : undefined;
  },

  // A change to any input replaces the object, with one exception: a new selector that matches the same device only
  // causes an update.
  async update(_connection, _id, state, inputs) {
    return { ...state, device: inputs.device };
  },

  async delete(connection, id) {
    const { tenant, uid, tag } = ids.split(id);
    await deleteTags(await connection.tenant(tenant), uid, [tag]);
  },
});

/** Returns true if the declared fields of a device contain this tag. */
const hasTag = (declared: unknown, tag: string): boolean =>
  ((declared as { readonly tags?: readonly string[] } | null)?.tags ?? []).includes(tag);

/**
 * Returns true if the device already has the new tag, but no longer the replaced tag. This happens after a `Tag`
 * resource has renamed the tag.
 */
function wasRenamed(device: Device, tag: string, { replaced }: Origin): boolean {
  const old = replaced?.state;
  return old?.uid === device.uid && device.tags.includes(tag) && !device.tags.includes(String(old.tag));
}

async function attach(opened: TenantClient, uid: string, tag: string, origin: Origin): Promise<void> {
  const { idempotencyKey, replaced } = origin;
  const send = () => opened.client.createDeviceTag({ params: { uid }, body: { tag } }, { idempotencyKey });
  try {
    await send();
  } catch (error) {
    const old = replaced?.state;
    if (!(error instanceof PermissionError) || old?.uid !== uid) throw error;
    // If the device already has the maximum number of tags, the service rejects a new tag. The replaced tag must then
    // be removed first.
    await deleteTags(opened, uid, [String(old.tag)]);
    await send();
  }
}

function existing(tenant: string, selector: string, device: Device, tag: string) {
  return { id: `${tenant}/${device.uid}/${tag}`, state: { ...deviceValues(tenant, selector, device), tag } };
}

/**
 * The attachment of one tag to a device. An update changes only the selector of the device: the new selector matches
 * the same device, so the object does not change. All other changes replace the resource.
 */
export const deviceTagAttachment: Kind = {
  definition,
  keyOf: idWithin,
  reading: undefined,
  parts: {
    whole: device.definition,
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
  quota: undefined,
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

/** A cache for {@link tagsInFilters}: the tags in the filters of each policy. */
const filterTags = new WeakMap<NamespacePolicy, ReadonlySet<string>>();

/**
 * Returns the tags in the filters of the objects that authorize logins. If a filter has a pattern, its tags have no
 * effect.
 */
function tagsInFilters(policy: NamespacePolicy): ReadonlySet<string> {
  const known = filterTags.get(policy);
  if (known) return known;
  const tags = new Set(
    deciderOf(policy).objects.flatMap(({ filter: { hostname, tags } }) => (hostname ? [] : (tags ?? []))),
  );
  filterTags.set(policy, tags);
  return tags;
}

/** Returns one object for each tag of each device. */
function attachmentsIn(of: ObjectsOf): LiveObject[] {
  const objects = new Map(devicesOf({ of }).map((object) => [deviceState(object).uid, object]));
  const devices = Array.from(objects.values(), listedDevice) as Device[];
  // Devices without tags must be included too, because selectors must be unique among all devices.
  return selectorsOf(devices).flatMap(({ device, selector }) => {
    const whole = objects.get(device.uid);
    const { tenant } = whole ? deviceState(whole) : { tenant: "" };
    const declaredBy = whole?.facts?.tagsDeclaredBy as Declaration | undefined;
    return device.tags.map((tag) => ({
      definition,
      id: `${tenant}/${device.uid}/${tag}`,
      name: `${tag} on ${device.name}`,
      state: { ...deviceValues(tenant, selector, device), tag },
      declaredBy,
    }));
  });
}
