import { type AccessDevice, type DeviceFilter, filterMatches } from "./decisions.ts";
import { networkOf } from "./networks.ts";

// In identity mode, a namespace authorizes logins by access policies. This mode exists in version 0.27 and later.

/** An access policy, which allows or denies logins of its subjects. Policies have no order and no priorities. */
export interface AccessPolicy {
  /** Id of the policy on the service. If the service has not created the policy yet, the name of its resource. */
  readonly id: string;
  /** Name of the policy. Other policies may have the same name. */
  readonly name: string;
  /** The users and service accounts to which the policy applies. */
  readonly subject: PolicySubject;
  /** The devices. A policy with an empty filter applies to every device. */
  readonly filter: DeviceFilter;
  /** The login names. The entry `*` matches every login name. Other entries are literal. */
  readonly logins: readonly string[];
  /** The client addresses, as addresses or networks. An empty list matches every address. */
  readonly sourceIps: readonly string[];
  /** The action for logins to which the policy applies. A deny policy overrides all allow policies. */
  readonly action: "allow" | "deny";
  /** True if a login requires a recent re-authentication of the user. Has no effect in deny policies. */
  readonly requireReauth: boolean;
  /** The time in seconds for which a re-authentication is valid. Null if every login requires a re-authentication. */
  readonly reauthPeriod: number | null;
}

/** The subjects of an access policy. `all-members` does not include service accounts. */
export interface PolicySubject {
  /**
   * The kind of subject. `user`: one user or service account. `role`: all members with a role. `all-members`: all
   * users.
   */
  readonly type: "user" | "role" | "all-members";
  /** The id of a user or service account, or a role. Ignored for `all-members`. */
  readonly value: string;
}

/** A user or service account that logs in to devices. The SSH keys only identify the principal. */
export interface Principal {
  /** The id of the user or service account. */
  readonly id: string;
  /** The e-mail address of a user, or the name of a service account. */
  readonly name: string;
  /** The kind of principal. A service account belongs to a program. */
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
  /** The time when the key expires, in RFC 3339; null if the key does not expire. */
  readonly expiresAt: string | null;
  /** The time of the login that used a single-use key; null if the key has not been used. */
  readonly consumedAt: string | null;
  /** The time of the user's last re-authentication with this key; null if there was no re-authentication. */
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
 * - `reauthentication`: the login waits until the user enters the account password in the browser;
 * - `approval`: the principal has no SSH key yet, and the login waits until the user confirms the new key in the
 *   browser;
 * - `unknown`: policies allow the login, but the service does not show whether the principal has an SSH key or must
 *   confirm a new key;
 * - `deny`: the login is refused.
 */
export type Outcome = "allow" | "reauthentication" | "approval" | "unknown" | "deny";

/**
 * The state of a principal's SSH keys. `live`: a key can be used. `approval`: the user can confirm a new key in the
 * browser. `none`: the principal cannot log in. `unknown`: the keys are not known.
 */
export type KeyState = "live" | "approval" | "none" | "unknown";

/** The roles with which a user can confirm a new SSH key. */
const ENROLLING: ReadonlySet<string> = new Set(["owner", "administrator", "operator"]);

/** Returns true if a key can be used: it has not expired, and it is not a single-use key that has been used. */
export const isLive = ({ expiresAt, consumedAt }: SshIdentity, at: Date): boolean =>
  consumedAt === null && (expiresAt === null || new Date(expiresAt) > at);

/** Returns the state of a principal's SSH keys at a given time. */
export function keyStateOf({ kind, role, keys }: Principal, at: Date): KeyState {
  if (keys?.some((key) => isLive(key, at))) return "live";
  if (keys === undefined) return "unknown";
  return kind === "user" && ENROLLING.has(role) ? "approval" : "none";
}

/**
 * Returns the outcome of a principal's login.
 * @param decision the decision of the policies
 */
export function outcomeFor(
  decision: "allow" | "deny" | "reauthentication",
  { kind }: Principal,
  keys: KeyState,
): Outcome {
  if (decision === "deny" || keys === "none") return "deny";
  // The user must confirm the login in any case, with or without an SSH key.
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

/** Returns a function that checks whether a policy applies to an address. */
export function sourceTest({ sourceIps, action }: AccessPolicy): (address: string) => boolean {
  if (sourceIps.length === 0) return () => true;
  const networks = sourceIps.map(networkOf);
  const unread = networks.indexOf(undefined);
  if (unread === -1) return (address) => networks.some((network) => network?.contains(address));
  // The server reads the entries in order. If it cannot read an entry, a deny policy applies, and an allow policy does
  // not apply.
  const readable = networks.slice(0, unread);
  return (address) => action === "deny" || readable.some((network) => network?.contains(address));
}

/** The part of a policy that does not match a login. */
export type PolicyMismatch = "subject" | "login" | "address" | "device";

/**
 * A policy, and its role in the decision about one login. `no effect`: the policy allows the login, but a different
 * policy denies it.
 */
export interface ConsideredPolicy {
  readonly policy: AccessPolicy;
  readonly role: "denies" | "allows" | "no effect" | "no match";
  /** The parts of the policy that do not match the login. */
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
   * - `key`: the key has expired or was already used, or the principal has no key and cannot confirm one;
   * - `policy`: a policy denies the login;
   * - `default`: no policy allows the login.
   */
  readonly deniedBy: "policies" | "key" | "policy" | "default" | undefined;
  /** The principal. Undefined for a key that belongs to no principal. */
  readonly principal: Principal | undefined;
  readonly device: AccessDevice;
  /** All deny policies, followed by all allow policies. Both lists are sorted by name. */
  readonly considered: readonly ConsideredPolicy[];
  /**
   * The time in seconds for which a re-authentication is valid. Null if every login requires a re-authentication.
   * Undefined if the login requires none.
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
  // The key will belong to the user who confirms it. Until then, policies cannot be evaluated.
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

/**
 * Sorts access policies: deny policies first, then allow policies. Policies with the same action are sorted by name and
 * id.
 */
export const inPolicyOrder = (policies: readonly AccessPolicy[]): AccessPolicy[] => {
  const keyOf = ({ action, name, id }: AccessPolicy) => [action === "deny" ? "0" : "1", name, id].join("\0");
  return policies.toSorted((left, right) => (keyOf(left) < keyOf(right) ? -1 : 1));
};

/** Returns the shortest re-authentication period of several policies. Null is shorter than any number. */
function shortestPeriod(policies: readonly AccessPolicy[]): number | null | undefined {
  const periods = policies.filter((policy) => policy.requireReauth).map((policy) => policy.reauthPeriod);
  if (periods.length === 0) return undefined;
  return periods.includes(null) ? null : Math.min(...periods.filter((period) => period !== null));
}

const isRecent = ({ lastReauthAt }: SshIdentity, period: number | null, at: Date): boolean =>
  period !== null && lastReauthAt !== null && at.getTime() - Date.parse(lastReauthAt) < period * 1000;
