import { compilePattern, PatternError } from "./pattern.ts";

/** Which devices something is for: by name pattern or by tags. */
export interface DeviceFilter {
  readonly hostname?: string;
  readonly tags?: readonly string[];
}

/** What of a public key decides whom it admits. */
export interface KeyRule {
  /** Pattern on the login name. */
  readonly username: string;
  readonly filter: DeviceFilter;
}

/** What of a device decides which keys are for it. */
export interface DeviceFacts {
  readonly name: string;
  readonly tags: readonly string[];
}

/** A stored pattern that does not compile (older servers took them) matches nothing: deny by default. */
function found(pattern: string, text: string): boolean {
  try {
    return compilePattern(pattern).test(text);
  } catch (error) {
    if (error instanceof PatternError) {
      return false;
    }
    throw error;
  }
}

/** True when the filter is for the device; an empty one is for every device (rules section 13). */
export function filterMatches(filter: DeviceFilter, device: DeviceFacts): boolean {
  if (filter.hostname) {
    return found(filter.hostname, device.name);
  }
  if (filter.tags && filter.tags.length > 0) {
    return filter.tags.some((tag) => device.tags.includes(tag));
  }
  return true;
}

/**
 * True when a key that is registered in the device's namespace admits `login` on the device (rules
 * section 13). An empty username matches every login. A pattern that does not compile matches nothing.
 */
export function keyAdmits(key: KeyRule, device: DeviceFacts, login: string): boolean {
  return (key.username === "" || found(key.username, login)) && filterMatches(key.filter, device);
}
