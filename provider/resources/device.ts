import { ValidationError } from "@gatehouse-access/sdk";
import { dateTime, devices, uid as uidSchema } from "@gatehouse-access/sdk/contract";
import { z } from "zod";
import { ResourceError, type ResourceFault, said } from "../resourceError.ts";
import type { TenantClient } from "../service/connection.ts";
import { type Device, keysOfDevice } from "../service/listings.ts";
import {
  defineResource,
  IdForm,
  liveFacts,
  optional,
  output,
  tenantInput,
  UnfinishedError,
} from "./definition.ts";
import { deviceInput, deviceOf, followDevice, idOfDevice } from "./deviceSelector.ts";

const status = z.enum(["accepted", "rejected"]);

type Status = z.output<typeof status>;

const info = z.object({
  id: z.string().describe("The ID of the operating system."),
  prettyName: z.string().describe("The name of the operating system."),
  version: z.string().describe("The version of the agent."),
  arch: z.string().describe("The processor architecture."),
  platform: z.string().describe("The platform of the agent, such as `native` or `docker`."),
});

const ids = new IdForm("Device", "tenant", "uid");

export const device = defineResource({
  name: "Device",
  description:
    "The name and status of an enrolled device. Devices enroll themselves: this resource updates an existing device and does not create one.",
  id: ids,
  object: { kind: "device" },
  inputs: {
    tenant: tenantInput,
    device: deviceInput,
    name: optional(devices.deviceName, {
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
      // The name and the status are set with separate requests, and the first request may have succeeded.
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
    const { client, devices: listing } = await connection.tenant(tenant);
    await listing.remove(uid, client, (witnessed) => witnessed.deleteDevice({ params: { uid } }));
  },
});

interface Declared {
  readonly name?: string | undefined;
  readonly status?: Status | undefined;
}

type Named = Pick<Device, "uid" | "name" | "identity"> & { readonly status: string };

/**
 * Sets the declared name and status of a device. Sends at most one request for the name and at most one request for the
 * status. Other resources of the run then read the new name and status.
 */
async function applyTo<D extends Named>(
  { client, devices: listing }: TenantClient,
  found: D,
  { name = found.name, status = found.status as Status }: Declared,
): Promise<D & { status: Status }> {
  const params = { uid: found.uid };
  if (name !== found.name) {
    await client.updateDevice({ params, body: { name } });
    listing.change(found.uid, { name }, keysOfAccepted({ ...found, name }));
  }
  if (status !== found.status) {
    if (status === "accepted") await client.acceptDevice({ params });
    else await reject(client, found);
    listing.change(found.uid, { status }, keysOfAccepted({ ...found, name, status }));
  }
  return { ...found, name, status };
}

/** The keys by which a device is found before all other devices: only an accepted device has such keys. */
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
      detail: said`cannot reject the device: it is already accepted`,
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
    // The service also has statuses that no program can declare. In a diff, such a status differs from every declared
    // status.
    status: found.status as Status,
    uid: found.uid,
    mac: found.identity.mac.toLowerCase(),
    info: found.info,
    online: found.online,
    lastSeen: found.lastSeen,
    createdAt: found.createdAt,
  };
}
