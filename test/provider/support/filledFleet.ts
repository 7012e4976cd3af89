import { type Fleet, startFleet } from "../../support/fleet.ts";
import { shared } from "../../support/shared.ts";
import { OTHER_TENANT, UNIVERSE } from "./programs.ts";

/** A test service that contains all tags, users and devices of UNIVERSE. */
export interface FilledFleet extends Fleet {
  /** The id of the namespace that the placeholder OTHER_TENANT represents. */
  readonly other: string;
  /** Replaces OTHER_TENANT in the inputs with the id of the second namespace. */
  here<T>(inputs: T): T;
  /** Enrolls all devices again that a test has renamed or removed. */
  restoreDevices(): Promise<void>;
}

const MACS: readonly string[] = UNIVERSE.devices.Device;
const nameOf = (mac: string) => `device-${mac.slice(-2)}`;

/** Starts a service with users and a second namespace. Both namespaces have devices and tags. */
export async function startFilledFleet(): Promise<FilledFleet> {
  const fleet = await startFleet(UNIVERSE.users);
  const { tenantId: other } = await fleet.client.createNamespace({ body: { name: "other" } });
  const tenants = [fleet.tenant, other];
  for (const tenant of tenants) await fill(fleet, tenant);
  return {
    ...fleet,
    other,
    async restoreDevices() {
      for (const tenant of tenants) {
        const client = fleet.client.forTenant(tenant);
        for (const device of await client.getDevices({ query: { perPage: 100 } })) {
          if (MACS.includes(device.identity.mac)) await client.deleteDevice({ params: { uid: device.uid } });
        }
        for (const mac of MACS) await fleet.enroll(nameOf(mac), mac, tenant);
      }
    },
    here: (inputs) => JSON.parse(JSON.stringify(inputs).replaceAll(OTHER_TENANT, other)),
  };
}

/** Starts one fleet for all tests of the surrounding block. */
export const sharedFilledFleet = (): FilledFleet => shared(startFilledFleet);

async function fill(fleet: Fleet, tenant: string): Promise<void> {
  const { Device: _byMac, ...byName } = UNIVERSE.devices;
  for (const hostname of Object.values(byName).flat()) await fleet.enroll(hostname, undefined, tenant);
  for (const mac of MACS) await fleet.enroll(nameOf(mac), mac, tenant);
  const tags: string[] = [...UNIVERSE.tags];
  while (tags.length > 0) {
    const uid = await fleet.enroll(`anchor-${tags.length}`, undefined, tenant);
    await fleet.client
      .forTenant(tenant)
      .updateDeviceTags({ params: { uid }, body: { tags: tags.splice(0, 3) } });
  }
}
