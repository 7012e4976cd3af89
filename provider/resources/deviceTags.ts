import { type Client, isNotFound, where } from "@gatehouse-access/sdk";
import { devices, uid as uidSchema } from "@gatehouse-access/sdk/contract";
import { z } from "zod";
import type { TenantClient } from "./connection.ts";
import { defineResource, output, required } from "./definition.ts";
import { tenantInput } from "./fields.ts";
import { splitId } from "./ids.ts";

type Device = Awaited<ReturnType<Client["getDevice"]>>;

const UID = /^[0-9a-f]{64}$/;
const MAC = /^([0-9a-f]{2}[:-]){5}[0-9a-f]{2}$/i;

export const deviceTags = defineResource({
  name: "DeviceTags",
  description:
    "All tags of a device: what it carries besides is removed. Keys and rules choose devices by tag.",
  idFormat: "tenant/uid",
  inputs: {
    tenant: tenantInput,
    device: required(z.string().min(1).max(64), {
      description:
        "The device: its uid, MAC address or name. A MAC or name follows a device that enrols again.",
      replaces: true,
      canonical: (selector) => selector.toLowerCase(),
      sameAs: (state, selector) => matches(state, selector),
    }),
    tags: required(devices.updateDeviceTags.body.shape.tags, {
      description: "One to three tags: 3 to 255 letters and digits each. Their order does not matter.",
    }),
  },
  outputs: {
    uid: output(uidSchema, { description: "The device's uid." }),
    mac: output(z.string(), { description: "The device's MAC address.", volatile: true }),
    deviceName: output(devices.deviceName, { description: "The device's name.", volatile: true }),
  },

  async create(connection, inputs) {
    const opened = await connection.tenant(inputs.tenant);
    const device = await findDevice(opened, inputs.device);
    if (!device) {
      throw new Error(
        `DeviceTags.device: the namespace ${opened.tenant} has no device "${inputs.device}"; give a uid, a MAC address or a name`,
      );
    }
    await opened.client.updateDeviceTags({ params: { uid: device.uid }, body: { tags: inputs.tags } });
    return {
      id: `${opened.tenant}/${device.uid}`,
      state: toState(opened.tenant, inputs.device, { ...device, tags: inputs.tags }),
    };
  },

  async read(connection, id, state) {
    const { tenant, uid } = splitId(id, "DeviceTags", "tenant", "uid");
    const opened = await connection.tenant(tenant);
    const selector = state.device ?? uid;
    // A device that enrolled again has a new uid; its MAC address or name still finds it.
    const device =
      (await findDevice(opened, uid)) ?? (selector === uid ? undefined : await findDevice(opened, selector));
    return device && { id: `${tenant}/${device.uid}`, state: toState(tenant, selector, device) };
  },

  async update(connection, id, state, inputs) {
    const { tenant, uid } = splitId(id, "DeviceTags", "tenant", "uid");
    const { client } = await connection.tenant(tenant);
    await client.updateDeviceTags({ params: { uid }, body: { tags: inputs.tags } });
    return { ...state, device: inputs.device, tags: [...inputs.tags].sort() };
  },

  async delete(connection, id, state) {
    const { tenant, uid } = splitId(id, "DeviceTags", "tenant", "uid");
    const { client } = await connection.tenant(tenant);
    for (const tag of state.tags) {
      await client.deleteDeviceTag({ params: { uid, tag } }).catch(ignoreMissing);
    }
  },
});

function ignoreMissing(error: unknown): void {
  if (!isNotFound(error)) throw error;
}

function matches(state: Readonly<Record<string, unknown>>, selector: string): boolean {
  return [state.uid, state.mac, state.deviceName].includes(selector);
}

/** The device that a uid, MAC address or name means; accepted ones win over others of the same name. */
async function findDevice({ client }: TenantClient, selector: string): Promise<Device | undefined> {
  if (UID.test(selector)) {
    return client.getDevice({ params: { uid: selector } }).catch((error: unknown) => {
      if (isNotFound(error)) return undefined;
      throw error;
    });
  }
  const field = MAC.test(selector) ? "identity.mac" : "name";
  const query = { filter: where(field).eq(selector), perPage: 100, sortBy: "name" };
  const found: Device[] = [];
  for await (const device of client.iterate("getDevices", { query })) {
    if ((field === "name" ? device.name : device.identity.mac).toLowerCase() === selector) found.push(device);
  }
  return found.find((device) => device.status === "accepted") ?? found[0];
}

function toState(tenant: string, selector: string, device: Device) {
  return {
    tenant,
    device: selector,
    tags: [...device.tags].sort(),
    uid: device.uid,
    mac: device.identity.mac.toLowerCase(),
    deviceName: device.name,
  };
}
