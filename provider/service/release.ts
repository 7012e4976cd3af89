import { type Client, ProtocolError, RequestError, TransportError } from "@gatehouse-access/sdk";

/** The release that this provider supports. */
const KNOWN: Release = { major: 0, minor: 19 };

/** A release of the service without its patch number, because clients do not depend on patches. */
export interface Release {
  readonly major: number;
  readonly minor: number;
}

/** Returns the text of a release: `0.27`. */
export const releaseText = ({ major, minor }: Release): string => `${major}.${minor}`;

/** Returns true for a release that is newer than the supported release. */
export const isNewer = ({ major, minor }: Release): boolean =>
  major > KNOWN.major || (major === KNOWN.major && minor > KNOWN.minor);

/**
 * Returns the release that the service reports. Undefined if the service does not report its release or cannot be
 * reached.
 */
export async function releaseOf(client: Client): Promise<Release | undefined> {
  try {
    const { version } = await client.getInfo({}, { retry: { attempts: 1, deadline: 10_000 } });
    const [, major, minor] = /^v?(\d{1,4})\.(\d{1,4})(?!\d)/.exec(version) ?? [];
    return major && minor ? { major: Number(major), minor: Number(minor) } : undefined;
  } catch {
    // The caller continues without the release, and fails later if the service is unavailable.
    return undefined;
  }
}

const TAGS =
  "in that release, tags are separate objects: one request creates a tag, and other requests attach the tag";

/**
 * Known differences between newer services and the supported release, by the API operation that fails because of the
 * difference.
 */
const DIFFERENCES: Readonly<Record<string, string>> = {
  createNamespace: "in that release, a community instance has a single namespace and cannot create others",
  deleteNamespace: "in that release, a community instance has a single namespace and cannot delete it",
  inviteMember: "in that release, members are invited, which requires a proxy that sends X-Forwarded-Host",
  createDeviceTag: TAGS,
  updateDeviceTags: TAGS,
  deleteDeviceTag: TAGS,
  renameTag: TAGS,
  getDevices: "in that release, devices are sorted and filtered by other fields",
};

function differenceMet(error: RequestError): string {
  const known = DIFFERENCES[error.operation];
  if (known && error.status !== undefined && error.status < 500) return `: ${known}`;
  if (error.status === 405) return ": that release no longer has this request";
  return error instanceof ProtocolError ? ": the answers of that release have another format" : "";
}

/**
 * Returns a line that explains why work with the service may have failed: the service's release differs from the
 * supported release. Undefined if the releases are equal, or if the error is not a response of the service.
 * @param release requests the release from the service
 */
export async function releaseNote(
  error: unknown,
  release: () => Promise<Release | undefined>,
): Promise<string | undefined> {
  const failed = requestIn(error);
  if (!failed || failed instanceof TransportError) return undefined;
  const found = await release();
  if (!found || releaseText(found) === releaseText(KNOWN)) return undefined;
  const difference = isNewer(found) ? differenceMet(failed) : "";
  return `the service has version ${releaseText(found)}, but this provider supports ${releaseText(KNOWN)}${difference}`;
}

/** Returns the failed request that caused an error. */
function requestIn(error: unknown): RequestError | undefined {
  if (error instanceof RequestError) return error;
  return error instanceof Error && error.cause !== undefined ? requestIn(error.cause) : undefined;
}
