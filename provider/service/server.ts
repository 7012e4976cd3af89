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
import { isSilent, isUnreadable } from "./listings.ts";

/** The server editions that a client can distinguish. */
export type ServerEdition = "community" | "enterprise or cloud";

/** The facts about a server that a client can determine. */
export interface Server extends ServerVersion {
  /** The edition. Undefined if the credential cannot read the namespace's firewall rules. */
  readonly edition: ServerEdition | undefined;
  /**
   * True for this project's server, which has revisions, idempotency keys and an audit trail. Undefined if the
   * credential cannot read the namespace.
   */
  readonly isOwn: boolean | undefined;
  /** The access mode of the namespace. Undefined if the server has only one mode. */
  readonly accessMode: SshAccessMode | undefined;
  /** False if the namespace was created in identity mode, so that it cannot be changed to legacy mode. */
  readonly isLegacyAllowed: boolean;
}

/**
 * Returns the product, the version and the edition of a server as text: `ShellHub 0.27.0-rc.6, community`, or
 * `gatehouse-server, API of ShellHub 0.19.0`. The product is omitted if it is not known.
 */
export function serverText({
  version,
  edition,
  isOwn,
}: Pick<Server, "version" | "edition" | "isOwn">): string {
  const known = version ?? "unknown version";
  if (isOwn)
    return `gatehouse-server, API of ShellHub ${known}${edition === "community" ? ", community" : ""}`;
  const product = isOwn === false ? `ShellHub ${known}` : known;
  return edition === undefined ? product : `${product}, ${edition}`;
}

/**
 * Reads the facts about a server. Sends at most three requests.
 * @param client a client of the namespace
 * @param tenant the namespace whose settings and firewall rules are read; undefined if the credential has no namespace
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
 * Returns true if this project's server sent a namespace: the namespace has a revision, and the header ETag contains
 * the same revision. An ETag alone is not proof, because proxies add ETags to the responses of other servers. A weak
 * ETag is accepted, because a proxy that compresses a response makes its ETag weak.
 */
export const isOwnAnswer = ({
  headers,
  body,
}: Pick<CallResult<"getNamespace">, "headers" | "body">): boolean =>
  body.revision !== undefined && headers.etag?.replace(/^W\//, "") === `"${body.revision}"`;

/**
 * Returns the error if the credential may not read an object, or if the object does not exist. Rethrows any other
 * error.
 */
function unlessRefused(error: unknown): RequestError {
  if (isUnreadable(error)) return error;
  throw error;
}

/** Returns the edition of a server, based on its response to a request for firewall rules. */
function editionBy(
  answer: unknown,
  { dialect }: ServerVersion,
  isOwn: boolean | undefined,
): ServerEdition | undefined {
  if (!(answer instanceof RequestError)) return "enterprise or cloud";
  // If the namespace could not be read, a 404 can be caused by a missing namespace.
  if (!isNotFound(answer) || isOwn === undefined) return undefined;
  // A 404 without a message may come from a proxy. For servers whose errors never have a message, it is a normal
  // response.
  const isUsual = isOwn === false && hasDifference(dialect, "errors without a message");
  return isSilent(answer) && !isUsual ? undefined : "community";
}

/**
 * Returns a note for a failed request if the version of the server is newer than the tested versions. The newer version
 * may be the cause of the failure. Returns undefined if the version is not newer.
 */
export function newerVersionNote({ version, dialect, isNewer }: ServerVersion): string | undefined {
  if (!isNewer) return undefined;
  return `the server has version ${version}, and Gatehouse was tested with versions up to ${dialect.name}; it is used like version ${dialect.name}`;
}

/** Returns true if an error is the response to a request, or was caused by a response. */
export function comesFromServer(error: unknown): boolean {
  if (error instanceof RequestError) return error.status !== undefined;
  return error instanceof Error && error.cause !== undefined && comesFromServer(error.cause);
}
