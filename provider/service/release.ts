import { type Client, ProtocolError, RequestError, TransportError } from "@gatehouse-access/sdk";

/** The release that this provider is made for. */
const KNOWN: Release = { major: 0, minor: 19 };

/** A release of the service, without its patch number: patches change nothing for clients. */
export interface Release {
  readonly major: number;
  readonly minor: number;
}

/** A release as people write it: `0.27`. */
export const releaseText = ({ major, minor }: Release): string => `${major}.${minor}`;

/** True for a release after the one that this provider is made for. */
export const isNewer = ({ major, minor }: Release): boolean =>
  major > KNOWN.major || (major === KNOWN.major && minor > KNOWN.minor);

/** The release that the service says it is of; undefined where it does not say, or cannot be asked. */
export async function releaseOf(client: Client): Promise<Release | undefined> {
  try {
    const { version } = await client.getInfo({}, { retry: { attempts: 1, deadline: 10_000 } });
    const [, major, minor] = /^v?(\d{1,4})\.(\d{1,4})(?!\d)/.exec(version) ?? [];
    return major && minor ? { major: Number(major), minor: Number(minor) } : undefined;
  } catch {
    // Whatever needs the release goes on without it, and fails by itself where the service does.
    return undefined;
  }
}

const TAGS = "tags are objects there, made first and attached by other requests";

/** What newer services do differently, by the operation that fails for it. */
const DIFFERENCES: Readonly<Record<string, string>> = {
  createNamespace: "a community instance has one namespace there, and makes no other",
  deleteNamespace: "a community instance has one namespace there, and keeps it",
  inviteMember: "members are invited there, which needs a proxy before it that sends X-Forwarded-Host",
  createDeviceTag: TAGS,
  updateDeviceTags: TAGS,
  deleteDeviceTag: TAGS,
  renameTag: TAGS,
  getDevices: "devices are sorted and filtered by other fields there",
};

function differenceMet(error: RequestError): string {
  const known = DIFFERENCES[error.operation];
  if (known && error.status !== undefined && error.status < 500) return `: ${known}`;
  if (error.status === 405) return ": it has no such request any more";
  return error instanceof ProtocolError ? ": its answers have another form" : "";
}

/**
 * Why work with a service may have failed, in one line, where the service is of another release than this provider is
 * made for; undefined where it is not, or where the error is about no request that a service answered.
 * @param release asks the service for its release
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
  return `the service is ${releaseText(found)}, this release knows ${releaseText(KNOWN)}${difference}`;
}

/** The failed request that an error is about. */
function requestIn(error: unknown): RequestError | undefined {
  if (error instanceof RequestError) return error;
  return error instanceof Error && error.cause !== undefined ? requestIn(error.cause) : undefined;
}
