import { type AccessDevice, type DeviceFilter, filterMatches } from "./decisions.ts";
import { networkOf } from "./networks.ts";

// A namespace in identity mode authorizes logins by access policies. The mode exists in version 0.27 and later.

/** An access policy: it allows or denies logins of its subjects. Policies have no order and no priorities. */
export interface AccessPolicy {
  /** Id of the policy on the service, or the name of its resource if the service has not created the policy yet. */
  readonly id: string;
  /** Name of the policy. Other policies may have the same name. */
  readonly name: string;
  /** The users and service accounts to which the policy applies. */
  readonly subject: PolicySubject;
  /** The devices. A policy with an empty filter applies to every device. */
  readonly filter: DeviceFilter;
  /** The login names. The entry `*` stands for every login name; other entries are literal. */
  readonly logins: readonly string[];
  /** The client addresses, as addresses or networks. An empty list stands for every address. */
  readonly sourceIps: readonly string[];
  /** The action for logins that the policy applies to. Any policy that denies is stronger than all that allow. */
  readonly action: "allow" | "deny";
  /** True if a login needs a recent re-authentication of the user. Only policies that allow have this effect. */
  readonly requireReauth: boolean;
  /** The time in seconds for which a re-authentication counts; null if every login needs a re-authentication. */
  readonly reauthPeriod: number | null;
}

/** The subjects of an access policy. Service accounts do not belong to `all-members`. */
export interface PolicySubject {
  /** `user` for one user or service account, `role` for all members with a role, `all-members` for all users. */
  readonly type: "user" | "role" | "all-members";
  /** The id of a user or service account, or a role. Without effect for `all-members`. */
  readonly value: string;
}

/** A user or service account that logs in to devices. Its SSH keys only identify it. */
export interface Principal {
  /** The id of the user or service account. */
  readonly id: string;
  /** The e-mail address of a user, or the name of a service account. */
  readonly name: string;
  /** A service account belongs to a program. */
  readonly kind: "user" | "service account";
  /** The role in the namespace: `owner`, `administrator`, `operator`, `observer` or `service`. */
  readonly role: string;
  /** The SSH keys of the principal. Undefined if the credential may not read them. */
  readonly keys: readonly SshIdentity[] | undefined;
}

/** An SSH key that identifies a principal. */
export interface SshIdentity {
  /** The SHA256 fingerprint of the key, in the form `SHA256:…`. */
  readonly fingerprint: string;
  /** The time at which the key expires, in RFC 3339; null for a key that does not expire. */
  readonly expiresAt: string | null;
  /** The time of the login that used up a single-use key; null before this login. */
  readonly consumedAt: string | null;
  /** The time of the user's last re-authentication with this key; null if there was none. */
  readonly lastReauthAt: string | null;
}

/** The objects that authorize logins in identity mode. */
export interface IdentityRules {
  /** The access policies, in any order. */
  readonly policies: readonly AccessPolicy[];
  /** The members of the namespace and the service accounts. */
  readonly principals: readonly Principal[];
}

/**
 * The result of a login:
 * - `allow`: the login is allowed;
 * - `reauthentication`: the login waits until the user enters the password of the account in the browser;
 * - `approval`: the principal has no SSH key yet; the login waits until the user confirms the new key in the browser;
 * - `unknown`: policies allow the login, but the service does not show whether the principal has an SSH key, or must
 *   confirm a new key;
 * - `deny`: the login is refused.
 */
export type Outcome = "allow" | "reauthentication" | "approval" | "unknown" | "deny";

/**
 * The state of a principal's SSH keys: `live` if a key works, `approval` if the user can confirm a new key in the
 * browser, `none` if the principal cannot log in, `unknown` if the keys are not known.
 */
export type KeyState = "live" | "approval" | "none" | "unknown";

/** The roles whose users can confirm a new SSH key. */
const ENROLLING: ReadonlySet<string> = new Set(["owner", "administrator", "operator"]);

/** Returns true if a key has neither expired nor been used up. */
export const isLive = ({ expiresAt, consumedAt }: SshIdentity, at: Date): boolean =>
  consumedAt === null && (expiresAt === null || new Date(expiresAt) > at);

/** Returns the state of a principal's SSH keys at a time. */
export function keyStateOf({ kind, role, keys }: Principal, at: Date): KeyState {
  if (keys?.some((key) => isLive(key, at))) return "live";
  if (keys === undefined) return "unknown";
  return kind === "user" && ENROLLING.has(role) ? "approval" : "none";
}

/**
 * Returns the outcome for a principal.
 * @param decision the decision of the policies
 */
export function outcomeFor(
  decision: "allow" | "deny" | "reauthentication",
  { kind }: Principal,
  keys: KeyState,
): Outcome {
  if (decision === "deny" || keys === "none") return "deny";
  // With or without a key, the user must confirm the login.
  if (keys === "unknown" && decision === "reauthentication" && kind === "user") return decision;
  if (keys !== "live") return keys;
  // Service accounts never re-authenticate.
  return kind === "service account" ? "allow" : decision;
}

/** Returns true if a policy applies to the principal. */
export function isSubject(
  { subject: { type, value } }: AccessPolicy,
  { id, role, kind }: Principal,
): boolean {
  if (type === "user") return value === id;
  return type === "role" ? value === role : kind === "user";
}

/** Returns true if a policy applies to a login name. */
export const hasLogin = ({ logins }: AccessPolicy, login: string): boolean =>
  logins.includes(login) || logins.includes("*");

/** Returns a function that returns true for the addresses to which a policy applies. */
export function sourceTest({ sourceIps, action }: AccessPolicy): (address: string) => boolean {
  if (sourceIps.length === 0) return () => true;
  const networks = sourceIps.map(networkOf);
  const unread = networks.indexOf(undefined);
  if (unread === -1) return (address) => networks.some((network) => network?.contains(address));
  // The server reads the entries in order. A policy that it cannot evaluate applies if the policy denies, and does not
  // apply if the policy allows.
  const readable = networks.slice(0, unread);
  return (address) => action === "deny" || readable.some((network) => network?.contains(address));
}

/** The part of a policy that does not apply to a login. */
export type PolicyMismatch = "subject" | "login" | "address" | "device";

/** A policy, and its role in the decision about one login. `no effect`: it allows, but another policy denies. */
export interface ConsideredPolicy {
  readonly policy: AccessPolicy;
  readonly role: "denies" | "allows" | "no effect" | "no match";
  /** The parts of the policy that do not apply to the login. */
  readonly mismatches: readonly PolicyMismatch[];
}

/** A login to evaluate in identity mode. */
export interface IdentityQuestion {
  /** The id of a principal, or the SHA256 fingerprint of an SSH key. */
  readonly subject: string;
  readonly login: string;
  readonly address: string;
  readonly uid: string;
  /** The time of the login. */
  readonly at: Date;
}

/** The reasons for the decision about a login in identity mode. */
export interface IdentityExplanation {
  readonly outcome: Outcome;
  /**
   * The reason why the login is denied; undefined if it is not denied:
   * - `policies`: the namespace has no access policy;
   * - `key`: the key has expired or was used up, or the principal has no key and cannot confirm one;
   * - `policy`: a policy denies the login;
   * - `default`: no policy allows the login.
   */
  readonly deniedBy: "policies" | "key" | "policy" | "default" | undefined;
  /** The principal. Undefined for a key that belongs to no principal. */
  readonly principal: Principal | undefined;
  readonly device: AccessDevice;
  /** All policies that deny, then all policies that allow, each sorted by name. */
  readonly considered: readonly ConsideredPolicy[];
  /**
   * The time in seconds for which a re-authentication counts; null if every login needs one. Undefined if the login
   * needs no re-authentication.
   */
  readonly reauthPeriod: number | null | undefined;
}

/**
 * Explains the decision about one login in identity mode.
 * @throws RangeError if the device or the principal does not exist
 */
export function explainIdentity(
  { devices, identity }: { readonly devices: readonly AccessDevice[]; readonly identity: IdentityRules },
  { subject, login, address, uid, at }: IdentityQuestion,
): IdentityExplanation {
  const device = devices.find((candidate) => candidate.uid === uid);
  if (!device) throw new RangeError(`no device has the uid ${uid}`);
  const { policies, principals } = identity;
  const keyOf = ({ keys = [] }: Principal) => keys.find(({ fingerprint }) => fingerprint === subject);
  const principal = principals.find((one) => one.id === subject || keyOf(one) !== undefined);
  if (!principal && !subject.startsWith("SHA256:"))
    throw new RangeError(`no principal has the id ${subject}`);
  const mismatchesOf = (policy: AccessPolicy): PolicyMismatch[] => [
    ...(principal && isSubject(policy, principal) ? [] : (["subject"] as const)),
    ...(hasLogin(policy, login) ? [] : (["login"] as const)),
    ...(sourceTest(policy)(address) ? [] : (["address"] as const)),
    ...(filterMatches(policy.filter, device, policy.action === "deny") ? [] : (["device"] as const)),
  ];
  const matched = inPolicyOrder(policies).map((policy) => ({ policy, mismatches: mismatchesOf(policy) }));
  const applying = matched.filter(({ mismatches }) => mismatches.length === 0).map(({ policy }) => policy);
  const isDenied = applying.some(({ action }) => action === "deny");
  const considered = matched.map(({ policy, mismatches }): ConsideredPolicy => {
    if (mismatches.length > 0) return { policy, role: "no match", mismatches };
    const role = policy.action === "deny" ? "denies" : isDenied ? "no effect" : "allows";
    return { policy, role, mismatches };
  });
  const explanation = { principal, device, considered, reauthPeriod: undefined, deniedBy: undefined };
  if (policies.length === 0) return { ...explanation, outcome: "deny", deniedBy: "policies" };
  // The key belongs to the user who confirms it, so policies cannot decide before.
  if (!principal) {
    const unread = principals.some(({ keys }) => keys === undefined);
    return { ...explanation, outcome: unread ? "unknown" : "approval" };
  }
  const key = keyOf(principal);
  const keys = key ? (isLive(key, at) ? "live" : "none") : keyStateOf(principal, at);
  if (keys === "none") return { ...explanation, outcome: "deny", deniedBy: "key" };
  if (isDenied) return { ...explanation, outcome: "deny", deniedBy: "policy" };
  if (applying.length === 0) return { ...explanation, outcome: "deny", deniedBy: "default" };
  const reauthPeriod = principal.kind === "user" ? shortestPeriod(applying) : undefined;
  const isFresh = reauthPeriod !== undefined && key !== undefined && isRecent(key, reauthPeriod, at);
  const decision = reauthPeriod === undefined || isFresh ? "allow" : "reauthentication";
  return { ...explanation, reauthPeriod, outcome: outcomeFor(decision, principal, keys) };
}

/** Sorts policies: those that deny first, then by name and id. */
export const inPolicyOrder = (policies: readonly AccessPolicy[]): AccessPolicy[] => {
  const keyOf = ({ action, name, id }: AccessPolicy) => [action === "deny" ? "0" : "1", name, id].join("\0");
  return policies.toSorted((left, right) => (keyOf(left) < keyOf(right) ? -1 : 1));
};

/** Returns the period of the strictest policy; null is stricter than any number. */
function shortestPeriod(policies: readonly AccessPolicy[]): number | null | undefined {
  const periods = policies.filter((policy) => policy.requireReauth).map((policy) => policy.reauthPeriod);
  if (periods.length === 0) return undefined;
  return periods.includes(null) ? null : Math.min(...periods.filter((period) => period !== null));
}

const isRecent = ({ lastReauthAt }: SshIdentity, period: number | null, at: Date): boolean =>
  period !== null && lastReauthAt !== null && at.getTime() - Date.parse(lastReauthAt) < period * 1000;
