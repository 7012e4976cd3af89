import type { DeviceAddress } from "../../features/devices/lookup.ts";

/** The device part of an SSH address: namespace and device name, or the uid. */
export type DeviceName = DeviceAddress | { readonly uid: string };

/** The login name and device of an SSH user name. */
export interface SshAddress {
  /** Login name on the device. */
  readonly login: string;
  readonly device: DeviceName;
}

/** Maximum length of a client's user name, in characters. Names of devices and namespaces are shorter. */
const LONGEST = 512;
/** Maximum length of a login name, in characters: the maximum length of login names in the API. */
const LOGIN_LONGEST = 255;

/**
 * Parses the user name of an SSH client: `login@namespace.device` or `login@uid`. Device names may contain dots.
 * @returns undefined for any other text
 */
export function readSshAddress(text: string): SshAddress | undefined {
  if (text.length > LONGEST) return undefined;
  const [, login, place] = /^([^@]+)@([^@]+)$/s.exec(text) ?? [];
  if (login === undefined || place === undefined || !isPrintable(text)) return undefined;
  if (login.length > LOGIN_LONGEST) return undefined;
  const dot = place.indexOf(".");
  if (dot === -1) return { login, device: { uid: place } };
  const device = { domain: place.slice(0, dot), name: place.slice(dot + 1) };
  return device.domain === "" || device.name === "" ? undefined : { login, device };
}

const isPrintable = (text: string): boolean => !/[\p{Cc}\p{Cs}]/u.test(text);
