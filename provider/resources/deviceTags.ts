import type { Device } from "../service/listings.ts";
import {
  defineResource,
  IdForm,
  listed,
  liveFacts,
  needsOfTags,
  required,
  tagsSchema,
  tenantInput,
} from "./definition.ts";
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
import { claimOfTag, removeTags } from "./deviceTagAttachment.ts";

const ids = new IdForm("DeviceTags", "tenant", "uid");

export const deviceTags = defineResource({
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

  // Returns the device's current tags, which a create adopts.
  async find(connection, inputs) {
    const opened = await connection.tenant(inputs.tenant);
    const device = await deviceOf(opened, inputs.device, "DeviceTags");
    if (device.tags.length === 0) return undefined;
    return existing(opened.tenant, inputs.device, device);
  },

  async list(connection, tenant) {
    const { devices } = await connection.tenant(tenant);
    const selected = selectorsOf(await devices.all());
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
    opened.devices.put({ ...device, tags });
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
    // A run can replace a DeviceTags resource with DeviceTagAttachment resources. The tags of the attachments stay on
    // the device.
    const own = state.tags.filter((tag) => !isClaimed(claimOfTag(`${id}/${tag}`)));
    await removeTags(opened, uid, own);
  },
});

function existing(tenant: string, selector: string, device: Device) {
  const live = liveFacts({ revision: device.tagsRevision, declaredBy: device.tagsDeclaredBy });
  return { id: `${tenant}/${device.uid}`, state: toState(tenant, selector, device), live };
}

function toState(tenant: string, selector: string, device: Device) {
  return { ...deviceState(tenant, selector, device), tags: [...device.tags].sort() };
}
