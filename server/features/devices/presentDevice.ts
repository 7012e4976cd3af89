import { devices, type Role, roleAtLeast } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import { declaredIn, revisionOf } from "../../changes/managedObject.ts";
import type { Device } from "../../db/generated/sqlite/client.ts";
import { presenter, wireDate } from "../fields.ts";
import { tagRows } from "../tags/tagList.ts";
import { declaredDevice, declaredTags } from "./objects.ts";

const { device } = devices;

type WireDevice = z.output<typeof device>;

interface Surroundings {
  /** Name of the namespace. */
  readonly namespace: string;
  /** The result of `onlineSince` in wire format. Strings in this format sort chronologically. */
  readonly onlineSince: string;
  readonly acceptable: boolean;
}

/**
 * Returns a device with the fields that a member with this role may read. Observers do not receive the public key,
 * because the public key and the MAC address are sufficient to request a token for the device.
 */
export const shownTo = <D extends Pick<WireDevice, "public_key">>(role: Role, device: D): D =>
  roleAtLeast(role, "operator") ? device : { ...device, public_key: "" };

/** Converts a device to its wire format (models section 3). */
export const presentDevice = presenter<
  Device,
  typeof device,
  [tags: readonly string[], surroundings: Surroundings]
>(device, {
  identity: ({ mac }) => ({ mac }),
  info: (row) => ({
    id: row.infoId,
    pretty_name: row.infoPrettyName,
    version: row.infoVersion,
    arch: row.infoArch,
    platform: row.infoPlatform,
  }),
  online: (row, _, { onlineSince }) => !row.offline && wireDate(row.lastSeen) > onlineSince,
  namespace: (_, _tags, { namespace }) => namespace,
  status_update_at: (row) => wireDate(row.statusUpdatedAt),
  position: ({ latitude, longitude }) => ({ latitude, longitude }),
  tags: (_, tags) => [...tags],
  acceptable: (_, _tags, { acceptable }) => acceptable,
  revision: (row) => revisionOf(declaredDevice(row)),
  tags_revision: (_, tags) => revisionOf(declaredTags(tagRows(tags))),
  // Deleting a tag does not change this column, so the column may be set for a device without tags.
  tags_declared_by: (row, tags) => (tags.length === 0 ? undefined : declaredIn(row.tagsDeclaredBy)),
});
