import {
  type CallResult,
  type Client,
  hasDifference,
  isLegacyModeAllowed,
  isNotFound,
  RequestError,
  type ServerVersion,
  type SshAccessMode,
  sshAccessModeOf,
} from "@gatehouse-access/sdk";
import type { FieldPath } from "@gatehouse-access/sdk/errors";
import { type ResourceFault, said } from "../resourceError.ts";
import { isSilent, isUnreadable } from "./listings.ts";

/** The editions of a server that a client can distinguish. */
type ServerEdition = "community" | "enterprise or cloud";

/** A server, as a client sees it. */
export interface Server extends ServerVersion {
  /** Undefined if the credential cannot read the namespace's firewall rules. */
  readonly edition: ServerEdition | undefined;
  /**
   * True for this project's server, which has revisions, idempotency keys and an audit trail. Undefined if the
   * credential cannot read the namespace.
   */
  readonly isOwn: boolean | undefined;
  /** The way in which the namespace decides about logins. Undefined if the server has a single way. */
  readonly accessMode: SshAccessMode | undefined;
  /** False if the namespace was created in identity mode, so that it cannot change to legacy mode. */
  readonly isLegacyAllowed: boolean;
}

const hasTagObjects = ({ dialect }: Server): boolean => hasDifference(dialect, "tags as objects");
const hasAccessModes = ({ dialect }: Server): boolean => hasDifference(dialect, "access modes");
const isOwnOrUnknown = ({ isOwn }: Server): boolean => isOwn !== false;

/** The abilities that some servers lack, in the order of reports. If an ability is unknown, the result is true. */
const HAS = {
  "firewall rules": ({ edition }: Server) => edition !== "community",
  /** Creation and deletion of namespaces. */
  "several namespaces": ({ edition, dialect }: Server) =>
    edition !== "community" || !hasDifference(dialect, "one namespace"),
  /** On a device or in a filter. */
  "more than three tags": hasTagObjects,
  /** The settings of a namespace that only this project's server has. */
  "session settings": isOwnOrUnknown,
  /** A namespace decides by public keys and firewall rules, or by access policies. */
  "access modes": hasAccessModes,
  /**
   * The namespace can change to legacy mode. Other editions have several namespaces. There, the namespace itself is read
   * when it is updated.
   */
  "legacy mode": ({ isLegacyAllowed, edition }: Server) => isLegacyAllowed || edition !== "community",
  /** Tags that exist without an object. */
  "tags as objects": hasTagObjects,
  /** A log with the user of each change. */
  "audit trail": isOwnOrUnknown,
  /** Create requests that can be repeated without a second object. */
  "idempotency keys": isOwnOrUnknown,
  /** The service ends the access of keys, rules and members at their ends. */
  "access expiry": isOwnOrUnknown,
  /** Public keys that belong to a member, and that admit no login after the membership. */
  "key owners": isOwnOrUnknown,
  /** Programs that exchange tokens of an OpenID Connect provider for sessions. */
  "trusted workloads": isOwnOrUnknown,
  "access policies": hasAccessModes,
  "service accounts": hasAccessModes,
  "install keys": hasAccessModes,
} as const;

/** An ability that some servers lack. */
type Capability = keyof typeof HAS;

/** The capabilities, in the order of reports. */
export const CAPABILITIES = Object.keys(HAS) as Capability[];

/** Returns true if the server has the capability. If this is unknown, the result is true. */
export const hasCapability = (server: Server, capability: Capability): boolean => HAS[capability](server);

const NEEDS_027 = "use version 0.27 or later";

/** A predicate about a server that lacks what an input needs, a remedy, and the effect if the input is still possible. */
type Lack = Readonly<Record<"text" | "remedy", string>> & { readonly notice?: string };

const LACKS = {
  "firewall rules": {
    text: "has no firewall rules",
    remedy: "remove the rule, or use the enterprise edition",
  },
  "several namespaces": {
    text: "has a single namespace and cannot create another one",
    remedy: "declare the existing namespace with adopt, or use the enterprise edition",
  },
  "more than three tags": { text: "allows at most 3 tags", remedy: "remove tags" },
  "session settings": { text: "does not have this setting", remedy: "remove the setting" },
  "access expiry": {
    text: "does not end access by itself",
    remedy: "remove the end, or do not require enforced expiry",
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
    remedy: "use identity, and declare the access as access policies",
  },
} as const satisfies Partial<Record<Capability, Lack>>;

/** A capability that an input of a resource can need. */
export type NeededCapability = keyof typeof LACKS;

/** Returns the error for an input that needs a capability that the server lacks. */
export function lackFault(server: Server, capability: NeededCapability, field?: FieldPath): ResourceFault {
  const { text, remedy } = LACKS[capability];
  return {
    code: "unsupported_by_server",
    field,
    detail: [...said`this server (${serverText(server)}) `, { own: text }],
    remedy: [{ own: remedy }],
  };
}

/** Returns the notice about inputs that are possible without a capability. Undefined if such inputs are an error. */
export function lackNotice(capability: NeededCapability): string | undefined {
  const { text, notice }: Lack = LACKS[capability];
  return notice && `this server ${text}: ${notice}`;
}

/** Returns the version and the edition of a server as text: `0.27.0-rc.6, community`. */
export const serverText = ({ version, edition }: Pick<Server, "version" | "edition">): string =>
  [version ?? "unknown version", edition].filter((part) => part !== undefined).join(", ");

/**
 * Reads the facts about a server. Sends at most three requests.
 * @param client a client of the namespace
 * @param tenant the namespace whose settings and firewall rules are read. Undefined if the credential has no namespace
 */
export async function serverOf(client: Client, tenant: string | undefined): Promise<Server> {
  const version = await client.serverVersion();
  if (tenant === undefined) {
    return { ...version, edition: undefined, isOwn: undefined, accessMode: undefined, isLegacyAllowed: true };
  }
  const [rules, namespace] = await Promise.all([
    client.getFirewallRules({ query: { perPage: 1 } }).catch(unlessRefused),
    client.call("getNamespace", { params: { tenant } }).catch(unlessRefused),
  ]);
  const isOwn = "headers" in namespace ? isOwnAnswer(namespace) : undefined;
  return {
    ...version,
    edition: editionBy(rules, version, isOwn),
    isOwn,
    accessMode: "body" in namespace ? sshAccessModeOf(namespace.body) : undefined,
    isLegacyAllowed: !("body" in namespace) || isLegacyModeAllowed(namespace.body),
  };
}

/**
 * Returns true if this project's server sent a namespace: the namespace has a revision, and the header ETag contains the
 * same revision. An ETag alone proves nothing, because proxies add ETags to the responses of other servers. A proxy that
 * compresses a response makes its ETag weak.
 */
export const isOwnAnswer = ({
  headers,
  body,
}: Pick<CallResult<"getNamespace">, "headers" | "body">): boolean =>
  body.revision !== undefined && headers.etag?.replace(/^W\//, "") === `"${body.revision}"`;

/** Returns an error that shows that the credential may not read an object, or that the object does not exist. */
function unlessRefused(error: unknown): RequestError {
  if (isUnreadable(error)) return error;
  throw error;
}

/** Returns the edition of a server by its answer to a request for firewall rules. */
function editionBy(
  answer: unknown,
  { dialect }: ServerVersion,
  isOwn: boolean | undefined,
): ServerEdition | undefined {
  if (!(answer instanceof RequestError)) return "enterprise or cloud";
  // Without the namespace, a 404 can mean that the namespace does not exist.
  if (!isNotFound(answer) || isOwn === undefined) return undefined;
  // A 404 without a message may come from a proxy, except for servers whose errors have no message.
  const isUsual = isOwn === false && hasDifference(dialect, "errors without a message");
  return isSilent(answer) && !isUsual ? undefined : "community";
}

/**
 * Returns a note about the server for a failed request. The cause of the failure may be that the version is newer than
 * the tested versions. Undefined if the error does not come from the server.
 */
export function newerVersionNote({ version, dialect, isNewer }: ServerVersion): string | undefined {
  if (!isNewer) return undefined;
  return `the server has version ${version}, and Gatehouse was tested with versions up to ${dialect.name}; it is used like version ${dialect.name}`;
}

/** Returns true if an error is a failed request, or was caused by one. */
export function comesFromServer(error: unknown): boolean {
  if (error instanceof RequestError) return true;
  return error instanceof Error && error.cause !== undefined && comesFromServer(error.cause);
}
