import { patternFound } from "./pattern.ts";

/** Which devices something is for: by name pattern or by tags. */
export interface DeviceFilter {
  readonly hostname?: string;
  readonly tags?: readonly string[];
}

/** The parts of a public key that decide whom it admits. */
export interface KeyRule {
  /** Pattern on the login name. */
  readonly username: string;
  readonly filter: DeviceFilter;
}

/** The parts of a device that decide which keys are for it. */
export interface DeviceFacts {
  readonly name: string;
  readonly tags: readonly string[];
}

/**
 * True when the filter is for the device; an empty one is for every device (rules section 13).
 * @param broken the answer for a pattern that does not compile, see `patternFound`; by default false
 */
export function filterMatches(filter: DeviceFilter, device: DeviceFacts, broken = false): boolean {
  if (filter.hostname) return patternFound(filter.hostname, device.name, broken);
  if (filter.tags && filter.tags.length > 0) return filter.tags.some((tag) => device.tags.includes(tag));
  return true;
}

/**
 * True when a key that is registered in the device's namespace admits `login` on the device (rules
 * section 13). An empty username matches every login. A pattern that does not compile matches nothing.
 */
export function keyAdmits(key: KeyRule, device: DeviceFacts, login: string): boolean {
  return patternFound(key.username, login, false) && filterMatches(key.filter, device);
}
