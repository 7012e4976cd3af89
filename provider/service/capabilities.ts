import { DIALECTS, type Dialect, hasDifference } from "@gatehouse-access/sdk";
import type { FieldPath } from "@gatehouse-access/sdk/errors";
import { type ResourceFault, said } from "../resourceError.ts";
import { type Server, type ServerEdition, serverText } from "./server.ts";

const hasTagObjects = ({ dialect }: Server): boolean => hasDifference(dialect, "tags as objects");
const hasAccessModes = ({ dialect }: Server): boolean => hasDifference(dialect, "access modes");
const isOwnOrUnknown = ({ isOwn }: Server): boolean => isOwn !== false;

/** The text about a capability in the reference documentation. */
interface CapabilityText {
  readonly about: string;
  /** The result on a server without the capability. Undefined if the preview fails on such a server. */
  readonly without?: string;
}

/** Returns true if a server has a capability, or if this is not known. */
type Predicate = (server: Server) => boolean;

/** The capabilities that some servers do not have, in the order in which reports list them. */
const HAS = {
  "firewall rules": {
    has: ({ edition }) => edition !== "community",
    about: "`FirewallRule`: rules by login, device and address",
  },
  "several namespaces": {
    has: ({ edition, dialect }) => edition !== "community" || !hasDifference(dialect, "one namespace"),
    about: "`Namespace`: creation and deletion of namespaces",
  },
  "more than three tags": {
    has: hasTagObjects,
    about: "more than three tags on a device or in a filter",
  },
  "tags as objects": {
    has: hasTagObjects,
    about: "tags that exist without an object",
    without: "a `Tag` exists as long as an object uses it",
  },
  "session settings": {
    has: isOwnOrUnknown,
    about: "`settings` of a `Namespace` for session limits, forwarding and device proof",
  },
  "access modes": {
    has: hasAccessModes,
    about: "`settings.sshAccessMode`: a namespace authorizes logins by keys and rules, or by access policies",
  },
  "legacy mode": {
    // The setting that allows legacy mode belongs to the namespace. Editions that allow several namespaces check the
    // setting only when the namespace is updated.
    has: ({ isLegacyAllowed, edition }) => isLegacyAllowed || edition !== "community",
    about: "the change of a namespace to legacy mode",
  },
  "audit trail": {
    has: isOwnOrUnknown,
    about: "the user of each change",
    without: "`drift` reports the time of its first finding instead of the user",
  },
  "idempotency keys": {
    has: isOwnOrUnknown,
    about: "repeated creates that create one object (`Idempotency-Key`)",
    without: "[a repeated run can adopt an equal object](../guides/repeated-runs.md#existing-objects)",
  },
  revisions: {
    has: isOwnOrUnknown,
    about: "detection of concurrent changes (`If-Match`)",
    without: "a change in the milliseconds before a write is reverted",
  },
  "lockout guard": {
    has: isOwnOrUnknown,
    about: "refusal of changes that lock out the caller or the administrators",
    without: "only a review blocks [a lockout](../guides/lockouts.md)",
  },
  declarations: {
    has: isOwnOrUnknown,
    about: "the program that declares an object (`declared_by`)",
    without: "[a repair](../guides/drift.md#repair) prompts before each deletion",
  },
  "access expiry": {
    has: isOwnOrUnknown,
    about: "expiry of keys, rules and memberships (`expiresAt`)",
    without: "[a run after the expiry removes the object](../guides/other-servers.md#access-expiry)",
  },
  "key owners": {
    has: isOwnOrUnknown,
    about: "`owner` of a `PublicKey`",
    without: "the key keeps working after its owner leaves",
  },
  "trusted workloads": {
    has: isOwnOrUnknown,
    about: "`TrustedWorkload`: sessions of pipelines without a stored credential",
  },
  "access policies": { has: hasAccessModes, about: "`AccessPolicy`" },
  "service accounts": { has: hasAccessModes, about: "`ServiceAccount`" },
  "install keys": { has: hasAccessModes, about: "`InstallKey`" },
} as const satisfies Record<string, CapabilityText & { readonly has: Predicate }>;

/** A capability that some servers do not have. */
export type Capability = keyof typeof HAS;

/** The capabilities, in the order in which reports list them. */
export const CAPABILITIES = Object.keys(HAS) as Capability[];

/** Returns true if the server has the capability, or if this is not known. */
export const hasCapability = (server: Server, capability: Capability): boolean => HAS[capability].has(server);

/** Returns the description of a capability for the reference. */
export const capabilityText = (capability: Capability): CapabilityText => HAS[capability];

/** Returns a server with the usual settings of its kind and version. */
const usualServer = (dialect: Dialect, edition: ServerEdition, isOwn: boolean): Server => ({
  version: dialect.name,
  dialect,
  isNewer: false,
  edition,
  isOwn,
  accessMode: undefined,
  isLegacyAllowed: true,
});

/** Returns true if `gatehouse-server` has the capability in its default edition. */
export const isOwnCapability = (capability: Capability): boolean =>
  hasCapability(usualServer(DIALECTS[0] as Dialect, "enterprise or cloud", true), capability);

/**
 * Returns the ShellHub versions of an edition that have a capability. The result is `yes` for all supported versions,
 * `no` for none, or a range such as `0.21 and newer`.
 */
export function versionsWith(capability: Capability, edition: ServerEdition): string {
  const has = DIALECTS.map((dialect) => hasCapability(usualServer(dialect, edition, false), capability));
  const first = has.indexOf(true);
  if (first < 0) return "no";
  const lost = has.indexOf(false, first);
  if (lost < 0) return first === 0 ? "yes" : `${DIALECTS[first]?.name} and newer`;
  return `before ${DIALECTS[lost]?.name}`;
}

/**
 * Returns the servers that have a capability: `gatehouse-server, ShellHub 0.21 and newer`. Returns undefined if all
 * servers can have the capability. The namespace then determines whether it is available.
 */
export function serversWith(capability: Capability): string | undefined {
  const community = versionsWith(capability, "community");
  const larger = versionsWith(capability, "enterprise or cloud");
  if (isOwnCapability(capability) && community === "yes" && larger === "yes") return undefined;
  const products =
    community === larger
      ? [["ShellHub", community]]
      : [
          ["ShellHub Enterprise and Cloud", larger],
          ["ShellHub Community", community],
        ];
  return [
    ...(isOwnCapability(capability) ? ["gatehouse-server"] : []),
    ...products.flatMap(([product, versions]) =>
      versions === "no" ? [] : [versions === "yes" ? product : `${product} ${versions}`],
    ),
  ].join(", ");
}

const NEEDS_027 = "use ShellHub 0.27 or later";

/**
 * The texts for a server that does not have a capability: a predicate about the server, a remedy, and a notice. The
 * notice is only set if an input that needs the capability can still be used.
 */
type Lack = Readonly<Record<"text" | "remedy", string>> & { readonly notice?: string };

const LACKS = {
  "firewall rules": {
    text: "has no firewall rules",
    remedy: "remove the rule, or use gatehouse-server or the enterprise edition of ShellHub",
  },
  "several namespaces": {
    text: "has a single namespace and cannot create another one",
    remedy:
      "declare the existing namespace with adopt, or use gatehouse-server or the enterprise edition of ShellHub",
  },
  "more than three tags": { text: "allows at most 3 tags", remedy: "remove tags" },
  "session settings": { text: "does not have this setting", remedy: "remove the setting" },
  "access expiry": {
    text: "does not end access by itself",
    remedy: "remove the expiry time, or do not require enforced expiry",
    notice: "the first run after the end of an object removes the object",
  },
  "key owners": {
    text: "does not know the owners of keys",
    remedy: "remove the owner, or do not require enforced expiry",
    notice: "keys keep working after their owners leave the namespace",
  },
  "trusted workloads": {
    text: "has no trusted workloads",
    remedy: "remove the workload, and use an API key or a user's credential",
  },
  "access policies": { text: "has no access policies", remedy: NEEDS_027 },
  "service accounts": { text: "has no service accounts", remedy: NEEDS_027 },
  "install keys": { text: "has no install keys", remedy: NEEDS_027 },
  "access modes": {
    text: "has no access modes",
    remedy: `remove the setting, or ${NEEDS_027}`,
  },
  "legacy mode": {
    text: "does not change the namespace to legacy mode, because the namespace was created in identity mode",
    remedy: "use the mode identity, and declare access policies",
  },
} as const satisfies Partial<Record<Capability, Lack>>;

/** A capability that an input of a resource can need. */
export type NeededCapability = keyof typeof LACKS;

/** Returns the error for an input that needs a capability that the server does not have. */
export function lackFault(server: Server, capability: NeededCapability, field?: FieldPath): ResourceFault {
  const { text, remedy } = LACKS[capability];
  return {
    code: "unsupported_by_server",
    field,
    detail: [...said`This server (${serverText(server)}) `, { own: text }],
    remedy: [{ own: remedy }],
  };
}

/**
 * Returns the notice for inputs that can be used although the server does not have the capability. Returns undefined if
 * using these inputs is an error.
 */
export function lackNotice(capability: NeededCapability): string | undefined {
  const { text, notice }: Lack = LACKS[capability];
  return notice && `this server ${text}: ${notice}`;
}
