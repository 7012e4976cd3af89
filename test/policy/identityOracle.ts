import type {
  AccessDevice,
  AccessPolicy,
  IdentityRules,
  NamespacePolicy,
  Outcome,
  Principal,
  SshIdentity,
} from "../../sdk/policy/index.ts";
import { filterFits } from "./oracle.ts";

/**
 * A second implementation of the decisions in identity mode, as a reference for sdk/policy. The two implementations
 * share no code. The oracle answers one question at a time by brute force, and compares addresses as texts of bits.
 */

/** A login of a principal. */
export interface PrincipalLogin {
  readonly principal: Principal;
  /** The key of the login. Undefined for a question about the principal, with any of its keys. */
  readonly key?: SshIdentity | undefined;
  readonly device: AccessDevice;
  readonly login: string;
  readonly address: string;
  readonly at: Date;
}

/** The oracle's answer. */
interface IdentityAnswer {
  readonly outcome: Outcome;
  /** The policies that deny the login; if no policy denies, the policies that allow it. By name, then by id. */
  readonly deciding: readonly AccessPolicy[];
}

/** Returns the bits of an address as text: 32 for IPv4, 128 for IPv6. Undefined if the text is no address. */
function bitsOf(address: string): string | undefined {
  if (/^\d+(\.\d+){3}$/.test(address)) {
    return address
      .split(".")
      .map((octet) => Number(octet).toString(2).padStart(8, "0"))
      .join("");
  }
  if (!address.includes(":")) return undefined;
  const dotted = address.slice(address.lastIndexOf(":") + 1);
  const last = dotted.includes(".") ? (bitsOf(dotted) ?? "") : "";
  const groups =
    last === "" ? address : `${address.slice(0, -dotted.length)}${hex(last, 0)}:${hex(last, 16)}`;
  const [left = "", right] = groups.split("::");
  const spelled = (part: string) => (part === "" ? [] : part.split(":"));
  const [start, end] = [spelled(left), spelled(right ?? "")];
  const zeros = Array.from({ length: right === undefined ? 0 : 8 - start.length - end.length }, () => "0");
  return [...start, ...zeros, ...end]
    .map((group) => Number.parseInt(group, 16).toString(2).padStart(16, "0"))
    .join("");
}

const hex = (bits: string, from: number) => Number.parseInt(bits.slice(from, from + 16), 2).toString(16);

const MAPPED = `${"0".repeat(80)}${"1".repeat(16)}`;

/** Returns the bits of a client's address. An IPv4-mapped address counts as IPv4. */
function clientBits(address: string): string {
  const bits = bitsOf(address);
  if (bits === undefined) throw new Error(`${address} is no address`);
  return bits.length === 128 && bits.startsWith(MAPPED) ? bits.slice(96) : bits;
}

/**
 * True if an entry of a policy contains the client's address; undefined if the entry is no address and no network. The
 * server converts a single IPv4-mapped address, but no network.
 */
export function entryContains(entry: string, address: string): boolean | undefined {
  const [base = "", length] = entry.split("/");
  const bits = bitsOf(base);
  if (bits === undefined) return undefined;
  const client = clientBits(address);
  if (length === undefined) return clientBits(base) === client;
  if (Number(length) > bits.length) return undefined;
  return client.length === bits.length && client.startsWith(bits.slice(0, Number(length)));
}

/** True if a policy applies to the address. A policy that cannot be evaluated applies if it denies. */
function sourceFits({ sourceIps, action }: AccessPolicy, address: string): boolean {
  for (const entry of sourceIps) {
    const isInside = entryContains(entry, address);
    if (isInside === undefined) return action === "deny";
    if (isInside) return true;
  }
  return sourceIps.length === 0;
}

function subjectFits({ subject }: AccessPolicy, principal: Principal): boolean {
  if (subject.type === "all-members") return principal.kind !== "service account";
  return subject.value === (subject.type === "role" ? principal.role : principal.id);
}

const loginFits = ({ logins }: AccessPolicy, login: string): boolean =>
  logins.some((entry) => entry === "*" || entry === login);

/** The parts of a policy that do not apply to a login, in any order. */
export function unfit(
  policy: AccessPolicy,
  { device, login, address }: Omit<PrincipalLogin, "principal" | "at">,
  principal: Principal | undefined,
): string[] {
  const all: string[] = [];
  if (principal === undefined || !subjectFits(policy, principal)) all.push("subject");
  if (!loginFits(policy, login)) all.push("login");
  if (!sourceFits(policy, address)) all.push("address");
  if (!filterFits(policy.filter, device, policy.action === "deny")) all.push("device");
  return all;
}

const isUsable = ({ expiresAt, consumedAt }: SshIdentity, at: Date): boolean =>
  consumedAt === null && (expiresAt === null || Date.parse(expiresAt) > at.getTime());

/** The state of the keys with which the principal can log in. */
function keysOf({ principal, key, at }: PrincipalLogin): "live" | "none" | "approval" | "unknown" {
  if (key !== undefined) return isUsable(key, at) ? "live" : "none";
  if (principal.keys === undefined) return "unknown";
  for (const one of principal.keys) if (isUsable(one, at)) return "live";
  const canConfirm = principal.role !== "observer" && principal.role !== "service";
  return principal.kind === "user" && canConfirm ? "approval" : "none";
}

function compared(left: AccessPolicy, right: AccessPolicy): number {
  if (left.name !== right.name) return left.name < right.name ? -1 : 1;
  return left.id < right.id ? -1 : 1;
}

/** Decides a login of a principal. */
export function decideIdentity({ policies }: IdentityRules, login: PrincipalLogin): IdentityAnswer {
  const { principal, key, at } = login;
  const applying = policies.filter((policy) => unfit(policy, login, principal).length === 0).sort(compared);
  const denying = applying.filter(({ action }) => action === "deny");
  const keys = keysOf(login);
  if (denying.length > 0) return { outcome: "deny", deciding: denying };
  if (applying.length === 0 || keys === "none") return { outcome: "deny", deciding: applying };
  // If the keys are not known, a login that needs a re-authentication needs a confirmation in every case.
  const isSure = keys === "unknown" && principal.kind === "user" && applying.some((one) => one.requireReauth);
  if (isSure) return { outcome: "reauthentication", deciding: applying };
  if (keys !== "live") return { outcome: keys, deciding: applying };
  if (principal.kind === "service account") return { outcome: "allow", deciding: applying };
  // Without a key, each re-authentication counts as outdated.
  const last = key?.lastReauthAt
    ? (at.getTime() - Date.parse(key.lastReauthAt)) / 1000
    : Number.POSITIVE_INFINITY;
  const isHeld = applying.some(
    ({ requireReauth, reauthPeriod }) => requireReauth && (reauthPeriod === null || last >= reauthPeriod),
  );
  return { outcome: isHeld ? "reauthentication" : "allow", deciding: applying };
}

/** A login to evaluate: the id of a principal, the login name, the address, and the uid of the device. */
type LoginNames = readonly [principal: string, login: string, address: string, uid: string];

/** Returns the oracle's answers for all principals, login names, addresses and devices that are not `deny`. */
export function allowedLogins(
  { devices, identity }: NamespacePolicy,
  { logins, addresses }: { readonly logins: readonly string[]; readonly addresses: readonly string[] },
  at: Date,
): Map<string, IdentityAnswer> {
  const allowed = new Map<string, IdentityAnswer>();
  if (!identity) return allowed;
  for (const principal of identity.principals)
    for (const login of logins)
      for (const address of addresses)
        for (const device of devices) {
          const answer = decideIdentity(identity, { principal, device, login, address, at });
          const names: LoginNames = [principal.id, login, address, device.uid];
          if (answer.outcome !== "deny") allowed.set(JSON.stringify(names), answer);
        }
  return allowed;
}
