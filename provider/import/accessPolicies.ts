import { parseSshPublicKey, sha256Fingerprint } from "@gatehouse-access/sdk/contract";
import {
  type AccessRule,
  areDisjoint,
  type DeviceFilter,
  EVERY_LOGIN,
  literalsOf,
  loginNamesIn,
  patternOf,
  strongestFirst,
} from "@gatehouse-access/sdk/policy";
import type { Declarable } from "../namespace/liveObjects.ts";
import { rangesIn } from "./helperCalls.ts";

/**
 * Adds a comment to an access policy if its subject is an id. The comment contains the subject's name. @param names the
 * names of users and service accounts, by id
 */
export function withSubjectName(object: Declarable, names: ReadonlyMap<string, string>): Declarable {
  const { user = "" } = (object.inputs.subject ?? {}) as { readonly user?: string };
  const name = names.get(user);
  return name === undefined ? object : { ...object, comment: `Subject: ${name}` };
}

/** A public key of a namespace in legacy mode. */
export interface LegacyKey {
  readonly name: string;
  /** The key as a line in OpenSSH format. */
  readonly data: string;
  /** Pattern of the login names. */
  readonly username: string;
  readonly filter: DeviceFilter;
}

/** The SSH key of a user or a service account. */
export interface EnrolledKey {
  /** The SHA256 fingerprint of the key. */
  readonly fingerprint: string;
  /** The id of the user or the service account. */
  readonly principal: string;
  readonly principalName: string;
  readonly isServiceAccount: boolean;
  /** True if the key expires, has expired, or is valid for only one login. */
  readonly isLimited: boolean;
}

/** A service account that the program creates. */
interface NewAccount {
  readonly name: string;
  /** The SSH key of the account, as a line in OpenSSH format. */
  readonly data: string;
}

/** The subject of an access policy. */
type Subject =
  | { readonly user: string }
  | { readonly role: string }
  | { readonly allMembers: true }
  | { readonly account: NewAccount };

/** An access policy, with the inputs of the resource AccessPolicy. */
export interface PolicyInputs {
  readonly name: string;
  readonly subject: Subject;
  readonly filter: DeviceFilter;
  /** Login names, or the single entry `*`. */
  readonly logins: readonly string[];
  readonly sourceIps: readonly string[];
  readonly action: "allow" | "deny";
}

/** The existing access policies of a namespace, by id. They take effect in identity mode. */
export type ExistingPolicies = ReadonlyMap<string, PolicyInputs & { readonly requireReauth: boolean }>;

/** The objects of a namespace in legacy mode. */
export interface LegacyNamespace {
  readonly keys: readonly LegacyKey[];
  /** The firewall rules, oldest first. */
  readonly rules: readonly AccessRule[];
  readonly enrolled: readonly EnrolledKey[];
  readonly policies: ExistingPolicies;
}

/** An object whose effect changes when the namespace changes to identity mode, and the reason. */
interface Inexpressible {
  /** The key that loses access. Undefined for firewall rules and access policies. */
  readonly key?: LegacyKey;
  readonly text: string;
}

/**
 * Returns the reason why a program cannot declare a policy or the new service account of the policy. Returns undefined
 * if a program can declare both.
 */
export type RefusalOf = (policy: Omit<PolicyInputs, "subject">, account?: NewAccount) => string | undefined;

/**
 * The result of a conversion to identity mode: the new access policies, and the objects whose effect they cannot
 * preserve.
 */
interface Conversion {
  readonly policies: readonly PolicyInputs[];
  readonly inexpressible: readonly Inexpressible[];
}

const EVERY_DEVICE = { hostname: ".*" };

/**
 * Returns the access policies that replace the public keys and firewall rules of a namespace in identity mode. No key
 * gets more access than before. A key can lose access, since access policies have no priorities, and contain login
 * names instead of patterns. `inexpressible` lists these keys.
 * @param refusalOf default: a program can declare every policy
 */
export function accessPoliciesFor(
  { keys, rules, enrolled, policies }: LegacyNamespace,
  refusalOf: RefusalOf = () => undefined,
): Conversion {
  const inexpressible: Inexpressible[] = [];
  const known = new Set([...policies.values()].filter(({ requireReauth }) => !requireReauth).map(effectOf));
  const written = new Map<string, PolicyInputs>();
  const needed = new Set<string>();
  const add = (policy: PolicyInputs) => {
    const effect = effectOf(policy);
    needed.add(effect);
    if (!known.has(effect) && !written.has(effect)) written.set(effect, policy);
  };
  const denying = denialsOf(rules, refusalOf, inexpressible);
  const byFingerprint = new Map(enrolled.map((key) => [key.fingerprint, key]));
  const keyOf = new Map(keys.map((key) => [fingerprintOf(key), key]));
  const accounts = new Set<string>();

  for (const key of keys) {
    const lose = (text: string) => inexpressible.push({ key, text: `PublicKey ${key.name}: ${text}` });
    const devices = filterOf(key.filter);
    if (!patternOf(key.username) || !devices) {
      lose("its pattern is not valid, so the key gives no access");
      continue;
    }
    const own = byFingerprint.get(fingerprintOf(key));
    if (own?.isLimited) {
      lose(
        `${own.principalName} has enrolled this key, but it expires or works only once; delete it there first`,
      );
      continue;
    }
    const { names, isWhole } = loginNamesIn(key.username);
    if (!isWhole) {
      const kept = names.length > 0 ? `keeps access only as ${names.join(", ")}` : "gets no access policy";
      lose(`access policies list login names, so ${key.username} cannot be expressed; the key ${kept}`);
    }
    const blocked = names.filter((name) => denying.inexpressible.some((rule) => mayDeny(rule, key, name)));
    if (blocked.length > 0) lose(`a firewall rule that cannot be expressed may deny ${loginsText(blocked)}`);
    // An access policy for a principal applies to all keys of this principal.
    const others = enrolled.filter(({ principal, fingerprint }) => {
      return principal === own?.principal && fingerprint !== own.fingerprint;
    });
    const allowed = names.filter((name) => !blocked.includes(name));
    const shared = allowed.filter((name) =>
      others.every(({ fingerprint }) => admitsToo(keyOf.get(fingerprint), devices, name)),
    );
    if (shared.length < allowed.length) {
      const logins = loginsText(allowed.filter((name) => !shared.includes(name)));
      lose(
        `${own?.principalName} has another SSH key, which would also get ${logins}; delete that key first`,
      );
    }
    if (shared.length === 0) continue;
    if (own?.isServiceAccount) accounts.add(own.principal);
    const name = key.name || fingerprintOf(key);
    const account = own ? undefined : { name, data: key.data };
    const policy = { name, filter: devices, logins: shared, sourceIps: [], action: "allow" } as const;
    const refusal = refusalOf(policy, account);
    if (refusal !== undefined) lose(refusal);
    else if (own) add({ ...policy, subject: { user: own.principal } });
    else if (account) add({ ...policy, subject: { account } });
  }

  // The subject "all members" does not include service accounts, and a service account can have a role other than
  // `service`.
  const principals: readonly Subject[] = [
    { allMembers: true },
    { role: "service" },
    ...[...accounts].map((user) => ({ user })),
  ];
  for (const denial of denying.policies) for (const subject of principals) add({ ...denial, subject });
  for (const [id, policy] of policies) {
    if (needed.has(effectOf(policy)) && !policy.requireReauth) continue;
    const text = `AccessPolicy ${policy.name} (${id}) exists already and takes effect in identity mode`;
    inexpressible.push({ text });
  }
  return { policies: [...written.values()], inexpressible };
}

const fingerprintOf = ({ data }: LegacyKey): string => sha256Fingerprint(parseSshPublicKey(data));

/** Returns a string that is equal for two policies if they have the same effect, regardless of their names. */
const effectOf = ({ subject, filter, logins, sourceIps, action }: PolicyInputs): string =>
  JSON.stringify([subject, filter, logins.toSorted(), sourceIps.toSorted(), action]);

/** Returns the filter in the form that access policies use; undefined if its pattern is not valid. */
function filterOf({ hostname, tags = [] }: DeviceFilter): DeviceFilter | undefined {
  if (hostname) return patternOf(hostname) && { hostname };
  return tags.length > 0 ? { tags: [...new Set(tags)].sort() } : EVERY_DEVICE;
}

interface Denials {
  readonly policies: readonly Omit<PolicyInputs, "subject">[];
  readonly inexpressible: readonly AccessRule[];
}

/**
 * Returns the deny policies that replace firewall rules, and the rules that no policy can express. Adds the reason for
 * each of these rules to `reported`.
 */
function denialsOf(rules: readonly AccessRule[], refusalOf: RefusalOf, reported: Inexpressible[]): Denials {
  const policies: Omit<PolicyInputs, "subject">[] = [];
  const inexpressible: AccessRule[] = [];
  const active = strongestFirst(rules.filter((rule) => rule.active));
  for (const [place, rule] of active.entries()) {
    if (rule.action !== "deny") continue;
    const { names, isWhole } = loginNamesIn(rule.username);
    const sourceIps = isAny(rule.sourceIp) ? [] : rangesIn(rule.sourceIp)?.args.map(asNetwork);
    const filter = filterOf(rule.filter);
    const exception = active
      .slice(0, place)
      .find((other) => other.action === "allow" && overlap(other, rule));
    const isExpressible = isWhole && names.length > 0 && sourceIps && filter;
    const policy = isExpressible && {
      name: `deny-${rule.priority}`,
      filter,
      logins: names,
      sourceIps,
      action: "deny" as const,
    };
    const refusal = policy ? refusalOf(policy) : "access policies have no patterns for logins and addresses";
    if (policy && refusal === undefined && !exception) {
      policies.push(policy);
      continue;
    }
    inexpressible.push(rule);
    const reason = exception
      ? `an allow rule with priority ${exception.priority} is an exception, and access policies have no priorities`
      : refusal;
    reported.push({ text: `FirewallRule deny at priority ${rule.priority} (${rule.id}): ${reason}` });
  }
  return { policies, inexpressible };
}

/** Returns true for a pattern that matches every string of one line. */
const isAny = (pattern: string): boolean => loginNamesIn(pattern).names.includes(EVERY_LOGIN);

/**
 * Returns a range of IPv4 addresses as a network, which is the form that the service stores: `10.0.0.1/32` for
 * `10.0.0.1`.
 */
const asNetwork = (range: string): string => (range.includes("/") ? range : `${range}/32`);

/** Returns true if a login exists that both rules may match. */
const overlap = (left: AccessRule, right: AccessRule): boolean =>
  !areDisjoint([left.username, right.username], "login") &&
  !areDisjoint([left.sourceIp, right.sourceIp], "address") &&
  shareDevices(left.filter, right.filter);

/** Returns true if a rule may deny a login of a key. @param name a login name that the key allows, or `*` */
function mayDeny(rule: AccessRule, key: LegacyKey, name: string): boolean {
  const matches =
    name === EVERY_LOGIN
      ? !areDisjoint([rule.username], "login")
      : (patternOf(rule.username)?.test(name) ?? true);
  return matches && shareDevices(rule.filter, key.filter);
}

/**
 * Returns true if a device may match both filters. Only patterns that list complete names are compared, since device
 * names can contain any character.
 */
function shareDevices(
  { hostname: left = "" }: DeviceFilter,
  { hostname: right = "" }: DeviceFilter,
): boolean {
  if (left === "" || right === "") return true;
  const isApart = (names: string, pattern: string) => {
    const literals = literalsOf(names);
    return (
      literals?.kind === "whole" && literals.texts.every((name) => patternOf(pattern)?.test(name) === false)
    );
  };
  return !isApart(left, right) && !isApart(right, left);
}

/** Returns true if a key gives access to the same devices with this login name, or with all login names (`*`). */
function admitsToo(key: LegacyKey | undefined, devices: DeviceFilter, name: string): boolean {
  if (!key || JSON.stringify(filterOf(key.filter)) !== JSON.stringify(devices)) return false;
  if (isAny(key.username)) return true;
  return name !== EVERY_LOGIN && (patternOf(key.username)?.test(name) ?? false);
}

const loginsText = (names: readonly string[]): string =>
  names[0] === EVERY_LOGIN ? "every login" : `the logins ${names.join(", ")}`;
