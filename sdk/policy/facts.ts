import type { FirewallRuleFacts } from "./firewallDecides.ts";
import type { DeviceFacts, KeyRule } from "./keyAdmits.ts";

/** A device as the policy sees it. */
export interface AccessDevice extends DeviceFacts {
  /** What tells devices apart, and a device before a change from the same one after it. */
  readonly uid: string;
}

/** A public key as the policy sees it. */
export interface AccessKey extends KeyRule {
  /** What tells keys apart. */
  readonly fingerprint: string;
  /** Its name on the service, which need not be its own. */
  readonly name: string;
}

/** A firewall rule as the policy sees it. */
export interface AccessRule extends FirewallRuleFacts {
  /** What tells rules apart: the service's id, or of a planned one the resource's name. */
  readonly id: string;
}

/** All of a namespace that decides who can reach what. */
export interface AccessPolicy {
  readonly devices: readonly AccessDevice[];
  readonly keys: readonly AccessKey[];
  /** In the order in which they were made. Community instances have none (rules section 14). */
  readonly rules: readonly AccessRule[];
}

/** The login names and client addresses that a policy is evaluated for; devices and keys are the policy's own. */
export interface AccessDomain {
  readonly logins: readonly string[];
  /** As text, IPv4 in its dotted form. */
  readonly addresses: readonly string[];
}

/** One login: may who holds the key's private half log in as `login`, from the address, on the device? */
export interface AccessQuestion {
  readonly fingerprint: string;
  readonly login: string;
  readonly address: string;
  readonly uid: string;
}
