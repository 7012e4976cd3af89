import type { DeviceAddress } from "../../features/devices/lookup.ts";

/** A device as an SSH address names it: by its namespace and name, or by its uid. */
export type DeviceName = DeviceAddress | { readonly uid: string };

/** Who wants to log in where. */
export interface SshAddress {
  /** Login name on the device. */
  readonly login: string;
  readonly device: DeviceName;
}

/** Longest user name of a client, in characters; those of devices and namespaces are shorter. */
const LONGEST = 512;

/**
 * Reads the user name of an SSH client: `login@namespace.device`, or `login@uid`. Names of devices may have dots.
 * Undefined for any other text.
 */
export function readSshAddress(text: string): SshAddress | undefined {
  if (text.length > LONGEST) return undefined;
  const [, login, place] = /^([^@]+)@([^@]+)$/s.exec(text) ?? [];
  if (login === undefined || place === undefined || !isPrintable(text)) return undefined;
  const dot = place.indexOf(".");
  if (dot === -1) return { login, device: { uid: place } };
  const device = { domain: place.slice(0, dot), name: place.slice(dot + 1) };
  return device.domain === "" || device.name === "" ? undefined : { login, device };
}

const isPrintable = (text: string): boolean => !/[\p{Cc}\p{Cs}]/u.test(text);
