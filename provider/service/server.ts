import {
  type Client,
  type DifferenceName,
  hasDifference,
  isNotFound,
  PermissionError,
  RequestError,
  type ServerVersion,
} from "@gatehouse-access/sdk";
import { isSilent } from "./listings.ts";

/** An ability that some servers lack. */
export type Capability =
  /** Firewall rules. Community instances lack them. */
  | "firewall rules"
  /** Creation and deletion of namespaces. Community instances of newer versions have a single namespace. */
  | "several namespaces"
  /** More than three tags on a device or in a filter. */
  | "more than three tags"
  /** The settings of a namespace that only this project's server has. */
  | "session settings"
  /** A namespace can decide by access policies. */
  | "access modes"
  /** Tags that exist without an object. */
  | "tags as objects";

/** The editions of a server that a client can distinguish. */
export type ServerEdition = "community" | "enterprise or cloud";

/** A server, as a client sees it. */
export interface Server extends ServerVersion {
  /** Undefined if the credential cannot read the namespace's firewall rules. */
  readonly edition: ServerEdition | undefined;
  /** True for this project's server, which has revisions, idempotency keys and an audit trail. */
  readonly isOwn: boolean;
}

/** The differences of versions that give a server a capability. */
const GIVEN: Readonly<Partial<Record<Capability, DifferenceName>>> = {
  "more than three tags": "tags as objects",
  "tags as objects": "tags as objects",
  "access modes": "access modes",
};

/** Returns true if the server has the capability. If this is unknown, the result is true. */
export function hasCapability({ dialect, edition, isOwn }: Server, capability: Capability): boolean {
  const given = GIVEN[capability];
  if (given !== undefined) return hasDifference(dialect, given);
  if (capability === "session settings") return isOwn;
  if (capability === "firewall rules") return edition !== "community";
  return edition !== "community" || !hasDifference(dialect, "one namespace");
}

/** The capabilities, in the order of reports. */
export const CAPABILITIES: readonly Capability[] = [
  "firewall rules",
  "several namespaces",
  "more than three tags",
  "session settings",
  "access modes",
  "tags as objects",
];

/** Returns the version and the edition of a server as text: `0.27.0-rc.6, community`. */
export const serverText = ({ version, edition }: Pick<Server, "version" | "edition">): string =>
  [version ?? "unknown version", edition].filter((part) => part !== undefined).join(", ");

/**
 * Reads the facts about a server. Sends at most three requests.
 * @param client a client of the namespace
 * @param tenant the namespace whose firewall rules show the edition. Undefined if the credential has no namespace
 */
export async function serverOf(client: Client, tenant: string | undefined): Promise<Server> {
  const version = await client.serverVersion();
  if (tenant === undefined) return { ...version, edition: undefined, isOwn: false };
  const [edition, isOwn] = await Promise.all([editionOf(client), sendsRevisions(client, tenant)]);
  return { ...version, edition, isOwn };
}

/** Only this project's server sends the revision of a namespace, as the header ETag. */
async function sendsRevisions(client: Client, tenant: string): Promise<boolean> {
  const { headers } = await client.call("getNamespace", { params: { tenant } });
  return headers.etag !== undefined;
}

async function editionOf(client: Client): Promise<ServerEdition | undefined> {
  try {
    await client.getFirewallRules({ query: { perPage: 1 } });
    return "enterprise or cloud";
  } catch (error) {
    // A 404 without a message may come from a proxy.
    if (isNotFound(error)) return isSilent(error) ? undefined : "community";
    if (error instanceof PermissionError) return undefined;
    throw error;
  }
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
