import { defineResource } from "../model/defineResource.ts";
import { listed, liveFacts } from "../model/definition.ts";
import { needsOfTags, tagsSchema } from "../model/deviceFilter.ts";
import type { Draft } from "../model/draft.ts";
import { required, tenantInput } from "../model/fields.ts";
import { EXAMPLE_TENANT, EXAMPLE_UID, IdForm } from "../model/idForm.ts";
import type { Kind } from "../model/kind.ts";
import { outputOf } from "../model/plannedStep.ts";
import { idWithin } from "../model/values.ts";
import { type Doubt, doubtOf, requireAbsent } from "../service/absence.ts";
import type { TenantClient } from "../service/connection.ts";
import type { Device } from "../service/listings.ts";
import type { Values } from "../values.ts";
import { changeDevice, device, existingDevice, selectedDevice } from "./device.ts";
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

const ids = new IdForm("DeviceTags", {
  tenant: EXAMPLE_TENANT,
  uid: EXAMPLE_UID,
});

const definition = defineResource({
  name: "DeviceTags",
  description:
    "All tags of a device. Other tags of the device are removed. Public keys and firewall rules select devices by tag. Existing tags that equal `tags` are adopted even without `adopt`, and are removed when the resource is deleted.",
  id: ids,
  object: { kind: "deviceTags" },
  inputs: {
    tenant: tenantInput,
    device: deviceInput,
    tags: required(tagsSchema, {
      description:
        "The tags of the device, in any order. Must contain 1 to 3 tags of 3 to 255 letters and digits, or up to 64 tags on servers of version 0.21 or later.",
    }),
  },
  outputs: deviceOutputs,
  tags: { gives: "tags" },
  needs: ({ tags }) => needsOfTags(tags, ["tags"]),
  overwrites: true,
  identity: {
    fields: ["tenant", "device"],
    ofInputs: ({ tenant, device }) => [{ key: `tags of ${tenant ?? ""} ${device}`, property: "device" }],
    ofId: (id) => [{ key: `tags of ${id}`, property: "device" }],
  },

  // Returns the current tags of the device. A create adopts them.
  async find(connection, inputs) {
    const opened = await connection.tenant(inputs.tenant);
    const device = await deviceOf(opened, inputs.device, "DeviceTags");
    if (device.tags.length === 0) return undefined;
    return existing(opened.tenant, inputs.device, device);
  },

  async list(connection, tenant) {
    const { listing } = await connection.tenant(tenant);
    const selected = selectorsOf(await listing(devices).all());
    return selected
      .filter(({ device }) => device.tags.length > 0)
      .map(({ device, selector }) =>
        listed(`${tenant}/${device.uid}`, device.name, toState(tenant, selector, device), {
          declaredBy: device.tagsDeclaredBy,
        }),
      );
  },

  warning: pendingWarning,

  named: idOfDevice,

  async create(connection, inputs, origin) {
    const opened = await connection.tenant(inputs.tenant);
    const { tenant } = opened;
    const device = await deviceOf(opened, inputs.device, "DeviceTags");
    const id = `${tenant}/${device.uid}`;
    origin.claim(id);
    const tags = [...inputs.tags];
    await opened.tagWork.during(() =>
      opened.client.updateDeviceTags({ params: { uid: device.uid }, body: { tags } }),
    );
    opened.listing(devices).put({ ...device, tags });
    return { id, state: toState(tenant, inputs.device, { ...device, tags }) };
  },

  async read(connection, id, state) {
    const { tenant, uid } = ids.split(id);
    const found = await followDevice(await connection.tenant(tenant), uid, state.device);
    if (!found) return undefined;
    return existing(tenant, found.selector, found.device);
  },

  async update(connection, id, state, inputs) {
    const { tenant, uid } = ids.split(id);
    const { client, tagWork } = await connection.tenant(tenant);
    const tags = [...inputs.tags];
    await tagWork.during(() => client.updateDeviceTags({ params: { uid }, body: { tags } }));
    return { ...state, device: inputs.device, tags: tags.sort() };
  },

  async delete(connection, id, state, isClaimed) {
    const { tenant, uid } = ids.split(id);
    const opened = await connection.tenant(tenant);
    // If the same run replaces a `DeviceTags` resource with `DeviceTagAttachment` resources, the tags of the
    // attachments stay on the device.
    const own = state.tags.filter((tag) => !isClaimed(claimOfTag(`${id}/${tag}`)));
    await deleteTags(opened, uid, own);
  },
});

function existing(tenant: string, selector: string, device: Device) {
  const live = liveFacts({ revision: device.tagsRevision, declaredBy: device.tagsDeclaredBy });
  return { id: `${tenant}/${device.uid}`, state: toState(tenant, selector, device), live };
}

function toState(tenant: string, selector: string, device: Device) {
  return { ...deviceValues(tenant, selector, device), tags: [...device.tags].sort() };
}

/** All tags of a device. The tags are part of the device, so the resource has no object of its own. */
export const deviceTags: Kind = {
  definition,
  keyOf: idWithin,
  reading: undefined,
  parts: undefined,
  watched: undefined,
  operations: {
    create: ["updateDeviceTags"],
    update: ["updateDeviceTags"],
    delete: ["deleteDeviceTag"],
  },
  plan: {
    stage: "objects",
    keyOf: (before) => outputOf(before, "uid"),
    newKey: selectedDevice,
    create: (draft, planned, inputs) => setTags(draft, selectedDevice(draft, planned), inputs),
    update: (draft, _planned, inputs, before) => setTags(draft, outputOf(before, "uid"), inputs),
    remove(draft, _planned, before, isClaimed) {
      const uid = outputOf(before, "uid");
      const tags = [before.outputs.tags].flat();
      const { tenant } = draft.live;
      removeTags(
        draft,
        uid,
        (tag) => tags.includes(tag) && !isClaimed(claimOfTag(`${tenant}/${uid}/${tag}`)),
      );
    },
  },
  quota: undefined,
  decides: undefined,
  role: undefined,
  changes: undefined,
  linted: undefined,
  imported: { file: "devices", naming: "device" },
};

const setTags = (draft: Draft, uid: string, { tags }: Values) =>
  changeDevice(draft, existingDevice(draft, uid).uid, { tags: tags as string[] });

/**
 * Removes tags from a device. Ignores tags that the device does not have. Does nothing if the device does not exist.
 */
export async function deleteTags(
  { client, listing }: TenantClient,
  uid: string,
  tags: readonly string[],
): Promise<void> {
  let doubt: Doubt | undefined;
  for (const tag of tags) {
    const removed = await doubtOf(client, (witnessed) => witnessed.deleteDeviceTag({ params: { uid, tag } }));
    doubt ??= removed;
  }
  await requireAbsent("DeviceTagAttachment", `${uid}/${tags.join(", ")}`, doubt, async () => {
    listing(devices).forget();
    const left = (await listing(devices).find(uid))?.tags ?? [];
    return tags.some((tag) => left.includes(tag));
  });
}

/**
 * Returns the claim key for one tag of a device.
 * @param id the id of the tag attachment: `tenant/uid/tag`
 */
export const claimOfTag = (id: string) => `tag of ${id}`;

/** Removes tags from a device in a draft, if the device exists. */
export function removeTags(draft: Draft, uid: string, isRemoved: (tag: string) => boolean): void {
  if (draft.of(device.definition)?.has(uid))
    changeDevice(draft, uid, { tags: existingDevice(draft, uid).tags.filter((tag) => !isRemoved(tag)) });
}
