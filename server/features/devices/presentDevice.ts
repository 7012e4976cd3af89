import { type devices, type Role, roleAtLeast } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import { declaredIn, revisionOf } from "../../changes/managedObject.ts";
import type { Device } from "../../db/generated/sqlite/client.ts";
import type { ShownRow } from "../../db/sql/sql.ts";
import { tagRows } from "../tags/tagList.ts";
import { wireDate } from "../wireDate.ts";
import { declaredDevice, declaredTags } from "./objects.ts";

type WireDevice = z.output<typeof devices.device>;

interface Surroundings {
  /** Name of the namespace. */
  readonly namespace: string;
  /** The result of `onlineSince` in wire format. In this format, the order of texts is the order of times. */
  readonly onlineSince: string;
  readonly acceptable: boolean;
}

/**
 * Returns a device with the fields that a member with this role may see. Observers do not receive the public key,
 * because the public key and the MAC are sufficient to request the device's token.
 */
export const shownTo = <D extends Pick<WireDevice, "public_key">>(role: Role, device: D): D =>
  roleAtLeast(role, "operator") ? device : { ...device, public_key: "" };

/** Converts a device to its wire format (models section 3). */
export function presentDevice(
  row: ShownRow<Device>,
  tags: readonly string[],
  { namespace, onlineSince, acceptable }: Surroundings,
): WireDevice {
  const lastSeen = wireDate(row.lastSeen);
  const statusUpdatedAt = wireDate(row.statusUpdatedAt);
  return {
    uid: row.uid,
    name: row.name,
    identity: { mac: row.mac },
    info: {
      id: row.infoId,
      pretty_name: row.infoPrettyName,
      version: row.infoVersion,
      arch: row.infoArch,
      platform: row.infoPlatform,
    },
    public_key: row.publicKey,
    tenant_id: row.tenantId,
    last_seen: lastSeen,
    online: !row.offline && lastSeen > onlineSince,
    namespace,
    status: row.status as WireDevice["status"],
    status_update_at: statusUpdatedAt,
    status_updated_at: statusUpdatedAt,
    created_at: wireDate(row.createdAt),
    remote_addr: row.remoteAddr,
    position: { latitude: row.latitude, longitude: row.longitude },
    tags: [...tags],
    public_url: row.publicUrl,
    acceptable,
    revision: revisionOf(declaredDevice(row)),
    tags_revision: revisionOf(declaredTags(tagRows(tags))),
    declared_by: declaredIn(row.declaredBy),
    // The deletion of a tag does not change the column, so the column may be set for a device without tags.
    tags_declared_by: tags.length === 0 ? undefined : declaredIn(row.tagsDeclaredBy),
    transport: row.transport,
  };
}
