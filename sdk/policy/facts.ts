import type { FirewallRuleFacts } from "./firewallDecides.ts";
import type { DeviceFacts, KeyRule } from "./keyAdmits.ts";

/** A device as the policy sees it. */
export interface AccessDevice extends DeviceFacts {
  /** Identifies the device, before and after a change. */
  readonly uid: string;
}

/** A public key as the policy sees it. */
export interface AccessKey extends KeyRule {
  /** Identifies the key. */
  readonly fingerprint: string;
  /** Its name, which other keys may have too. */
  readonly name: string;
}

/** A firewall rule as the policy sees it. */
export interface AccessRule extends FirewallRuleFacts {
  /** Identifies the rule: its id on the service, or the resource's name where it is still to be made. */
  readonly id: string;
}

/** What a namespace has that decides who can reach what. */
export interface AccessPolicy {
  readonly devices: readonly AccessDevice[];
  readonly keys: readonly AccessKey[];
  /** In the order in which they were made. Community instances have none (rules section 14). */
  readonly rules: readonly AccessRule[];
}

/** The login names and client addresses for which a policy is evaluated. */
export interface AccessDomain {
  readonly logins: readonly string[];
  /** As text, IPv4 in its dotted form. */
  readonly addresses: readonly string[];
}

/** The question whether the holder of a key may log in: as `login`, from `address`, on the device `uid`. */
export interface AccessQuestion {
  readonly fingerprint: string;
  readonly login: string;
  readonly address: string;
  readonly uid: string;
}
