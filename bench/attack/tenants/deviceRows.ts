import { createHash } from "node:crypto";
import type { Seeding } from "./tenantCase.ts";

/** Number of devices of a hostile tenant. */
export const DEVICES = 20_000;

/** Returns the uid of a device of a hostile tenant. */
export const hostileUid = (tenantId: string, index: number): string =>
  createHash("sha256").update(`${tenantId} ${index}`).digest("hex");

interface DeviceOptions {
  readonly count?: number;
  readonly nameOf?: (index: number) => string;
  /** The text of each field that an agent reports and a filter can search. */
  readonly text?: string;
  readonly publicKey?: string;
  /** Returns the tags of a device. */
  readonly tagsOf?: (index: number) => readonly [string, string, string];
}

/** Adds accepted devices to the namespace of a hostile tenant. */
export async function addDevices(
  { insert, tenantId, now }: Seeding,
  options: DeviceOptions = {},
): Promise<void> {
  const { count = DEVICES, nameOf = (index) => `host-${index}`, text = "debian", tagsOf } = options;
  const { publicKey = "unused" } = options;
  const batch = publicKey.length > 1000 ? 500 : 5000;
  await insert(
    "Device",
    count,
    (index) => ({
      uid: hostileUid(tenantId, index),
      tenantId,
      mac: index.toString(16).padStart(12, "0"),
      name: nameOf(index),
      publicKey,
      infoId: text,
      infoPrettyName: text,
      infoVersion: text.slice(0, 64),
      infoArch: text.slice(0, 64),
      infoPlatform: "native",
      status: "accepted",
      remoteAddr: "127.0.0.1",
      createdAt: now,
      statusUpdatedAt: now,
      lastSeen: now,
    }),
    batch,
  );
  if (tagsOf === undefined) return;
  const tagId = (tag: string) => `${tenantId} ${tag}`;
  const all = Array.from({ length: count }, (_, device) => tagsOf(device));
  const names = [...new Set(all.flat())];
  await insert("Tag", names.length, (index) => {
    const name = names[index] ?? "";
    return { id: tagId(name), tenantId, name };
  });
  await insert("DeviceTagUse", count * 3, (index) => {
    const [device, position] = [Math.floor(index / 3), index % 3];
    return {
      deviceUid: hostileUid(tenantId, device),
      tenantId,
      tagId: tagId(all[device]?.[position] ?? ""),
      position,
    };
  });
}
