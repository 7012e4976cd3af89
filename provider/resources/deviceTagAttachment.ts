import { PermissionError } from "@gatehouse-access/sdk";
import { tag as tagSchema } from "@gatehouse-access/sdk/contract";
import { type Doubt, doubtOf, requireAbsent } from "../service/absence.ts";
import type { TenantClient } from "../service/connection.ts";
import type { Device } from "../service/listings.ts";
import { defineResource, IdForm, listed, type Origin, required, tenantInput } from "./definition.ts";
import {
  deviceInput,
  deviceOf,
  deviceOutputs,
  deviceState,
  followDevice,
  idOfDevice,
  pendingWarning,
  selectorsOf,
} from "./deviceSelector.ts";

const ids = new IdForm("DeviceTagAttachment", "tenant", "uid", "tag");

export const deviceTagAttachment = defineResource({
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
    const { devices } = await connection.tenant(tenant);
    return selectorsOf(await devices.all()).flatMap(({ device, selector }) =>
      device.tags.map((tag) => {
        const { id, state } = existing(tenant, selector, device, tag);
        return listed(id, `${tag} on ${device.name}`, state, { declaredBy: device.tagsDeclaredBy });
      }),
    );
  },

  warning: pendingWarning,

  // The name of a listed object has the form `device/tag`.
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
    opened.devices.put({ ...device, tags: [...device.tags, inputs.tag] });
    return created;
  },

  async read(connection, id, state) {
    const { tenant, uid, tag } = ids.split(id);
    const found = await followDevice(await connection.tenant(tenant), uid, state.device);
    return found?.device.tags.includes(tag) ? existing(tenant, found.selector, found.device, tag) : undefined;
  },

  // A change of any input replaces the object, except for a new selector of the same device, which is an update.
  async update(_connection, _id, state, inputs) {
    return { ...state, device: inputs.device };
  },

  async delete(connection, id) {
    const { tenant, uid, tag } = ids.split(id);
    await removeTags(await connection.tenant(tenant), uid, [tag]);
  },
});

/** Returns true if the declared fields of a device's tags contain the tag. */
const hasTag = (declared: unknown, tag: string): boolean =>
  ((declared as { readonly tags?: readonly string[] } | null)?.tags ?? []).includes(tag);

/** Removes tags from a device, if the device exists and has the tags. */
export async function removeTags(
  { client, devices }: TenantClient,
  uid: string,
  tags: readonly string[],
): Promise<void> {
  let doubt: Doubt | undefined;
  for (const tag of tags) {
    const removed = await doubtOf(client, (witnessed) => witnessed.deleteDeviceTag({ params: { uid, tag } }));
    doubt ??= removed;
  }
  await requireAbsent("DeviceTagAttachment", `${uid}/${tags.join(", ")}`, doubt, async () => {
    devices.forget();
    const left = (await devices.find(uid))?.tags ?? [];
    return tags.some((tag) => left.includes(tag));
  });
}

/**
 * Returns the key of the claim on one tag of a device.
 * @param id `tenant/uid/tag`
 */
export const claimOfTag = (id: string) => `tag of ${id}`;

/**
 * Returns true if the device already has the new tag instead of the replaced tag. This is the case after a `Tag`
 * resource renamed the tag.
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
    // A device can have at most three tags, so the replaced tag must be removed first.
    await removeTags(opened, uid, [String(old.tag)]);
    await send();
  }
}

function existing(tenant: string, selector: string, device: Device, tag: string) {
  return { id: `${tenant}/${device.uid}/${tag}`, state: { ...deviceState(tenant, selector, device), tag } };
}
