import { ValidationError } from "@gatehouse-access/sdk";
import { dateTime, devices, uid as uidSchema } from "@gatehouse-access/sdk/contract";
import { z } from "zod";
import { ResourceError, type ResourceFault, said } from "../resourceError.ts";
import type { TenantClient } from "../service/connection.ts";
import type { Device } from "../service/listings.ts";
import { defineResource, IdForm, optional, output, tenantInput, UnfinishedError } from "./definition.ts";
import { deviceInput, deviceOf, followDevice, idOfDevice } from "./deviceSelector.ts";

const status = z.enum(["accepted", "rejected"]);

type Status = z.output<typeof status>;

const info = z.object({
  id: z.string().describe("Operating system id."),
  prettyName: z.string().describe("Operating system."),
  version: z.string().describe("Version of the agent."),
  arch: z.string().describe("Processor architecture."),
  platform: z.string().describe("How the agent runs."),
});

const ids = new IdForm("Device", "tenant", "uid");

export const device = defineResource({
  name: "Device",
  description:
    "Name and status of a device. Devices enroll by themselves: declaring one changes it, and makes none.",
  id: ids,
  inputs: {
    tenant: tenantInput,
    device: deviceInput,
    name: optional(devices.deviceName, {
      description: "Name, unique among the namespace's accepted devices. Left out: as it is.",
      canonical: (name) => name.toLowerCase(),
    }),
    status: optional(status, {
      description: "accepted or rejected; an accepted device cannot be rejected. Left out: as it is.",
    }),
    onDestroy: optional(z.enum(["keep", "remove"]), {
      description: "What destroying the resource does to the device.",
      default: "keep",
    }),
  },
  outputs: {
    uid: output(uidSchema, { description: "The device's uid." }),
    mac: output(z.string(), { description: "The device's MAC address." }),
    info: output(info, { description: "What the agent says of its machine.", volatile: true }),
    online: output(z.boolean(), {
      description:
        "It had reported within two minutes when the resource was created, or last read after a change made elsewhere.",
      volatile: true,
    }),
    lastSeen: output(dateTime, {
      description:
        "Its last report when the resource was created, or last read after a change made elsewhere.",
      volatile: true,
    }),
    createdAt: output(dateTime, { description: "When it enrolled." }),
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
      return { id, state: toState(opened.tenant, settings, await bringTo(opened, found, inputs)) };
    } catch (error) {
      // Name and status are two requests, of which the first may have succeeded.
      throw new UnfinishedError(id, toState(opened.tenant, settings, found), error, true);
    }
  },

  async read(connection, id, state) {
    const { tenant, uid } = ids.split(id);
    const found = await followDevice(await connection.tenant(tenant), uid, state.device);
    if (!found) return undefined;
    const settings = { device: found.selector, onDestroy: state.onDestroy ?? "keep" };
    return { id: `${tenant}/${found.device.uid}`, state: toState(tenant, settings, found.device) };
  },

  async update(connection, id, state, inputs) {
    const { tenant, uid } = ids.split(id);
    const opened = await connection.tenant(tenant);
    const { name, status } = await bringTo(opened, { uid, name: state.name, status: state.status }, inputs);
    return { ...state, name, status, device: inputs.device, onDestroy: inputs.onDestroy ?? "keep" };
  },

  async delete(connection, id, state) {
    if (state.onDestroy !== "remove") return;
    const { tenant, uid } = ids.split(id);
    const { client, devices: listing } = await connection.tenant(tenant);
    await client.deleteDevice({ params: { uid } });
    listing.drop(uid);
  },
});

interface Declared {
  readonly name?: string | undefined;
  readonly status?: Status | undefined;
}

/** Gives a device the declared name and status, by at most one request for each. */
async function bringTo<D extends { uid: string; name: string; status: string }>(
  { client }: TenantClient,
  found: D,
  { name = found.name, status }: Declared,
): Promise<D & { status: Status }> {
  const params = { uid: found.uid };
  if (name !== found.name) await client.updateDevice({ params, body: { name } });
  if (status === "accepted" && found.status !== status) await client.acceptDevice({ params });
  if (status === "rejected" && found.status !== status) await reject(client, found);
  return { ...found, name, status: (status ?? found.status) as Status };
}

async function reject(client: TenantClient["client"], found: { uid: string; status: string }): Promise<void> {
  try {
    await client.updateDeviceStatus({ params: { uid: found.uid, status: "reject" } });
  } catch (error) {
    if (!(error instanceof ValidationError) || found.status !== "accepted") throw error;
    const fault: ResourceFault = {
      code: "unsupported_change",
      field: ["status"],
      detail: said`the device is accepted, and the service rejects none that is`,
      remedy: said`remove it instead`,
    };
    throw new ResourceError("Device", fault, { cause: error });
  }
}

function toState(tenant: string, settings: { device: string; onDestroy: "keep" | "remove" }, found: Device) {
  return {
    tenant,
    ...settings,
    name: found.name,
    // The service has other statuses too; they differ from every declared one.
    status: found.status as Status,
    uid: found.uid,
    mac: found.identity.mac.toLowerCase(),
    info: found.info,
    online: found.online,
    lastSeen: found.lastSeen,
    createdAt: found.createdAt,
  };
}
