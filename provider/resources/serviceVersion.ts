import { type Client, ProtocolError, RequestError, TransportError } from "@gatehouse-access/sdk";
import type { Connection } from "./connection.ts";

/** The release of the service that this provider is made for. */
const KNOWN: Release = { major: 0, minor: 19 };

/** A release of the service; patches change nothing for its clients. */
export interface Release {
  readonly major: number;
  readonly minor: number;
}

/** As people write it: `0.27`. */
export const releaseText = ({ major, minor }: Release): string => `${major}.${minor}`;

/** True for a release after the one that this provider is made for. */
export const isNewer = ({ major, minor }: Release): boolean =>
  major > KNOWN.major || (major === KNOWN.major && minor > KNOWN.minor);

/** What the service says that it is; undefined where it says nothing that can be read. */
export async function releaseOf(client: Client): Promise<Release | undefined> {
  try {
    const { version } = await client.getInfo({}, { retry: { deadline: 10_000 } });
    const [, major, minor] = /^v?(\d{1,4})\.(\d{1,4})(?!\d)/.exec(version) ?? [];
    return major && minor ? { major: Number(major), minor: Number(minor) } : undefined;
  } catch {
    // It is asked beside something else, which says by itself what is wrong.
    return undefined;
  }
}

const TAGS = "tags are objects there, made first and attached by other requests";

/** What newer services do otherwise, by the operation that meets it. */
const DIFFERENCES: Readonly<Record<string, string>> = {
  createNamespace: "a community instance has one namespace there, and makes no other",
  deleteNamespace: "a community instance has one namespace there, and keeps it",
  inviteMember: "members are invited there, not added",
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
 * Why a request may have failed, in one line, where the service is of another release; else undefined. Nothing is asked
 * where no service answered.
 */
export async function otherRelease(connection: Connection, error: RequestError): Promise<string | undefined> {
  if (error instanceof TransportError) return undefined;
  const release = await connection.release();
  if (!release || releaseText(release) === releaseText(KNOWN)) return undefined;
  const difference = isNewer(release) ? differenceMet(error) : "";
  return `the service is ${releaseText(release)}, this release knows ${releaseText(KNOWN)}${difference}`;
}

const told = new WeakSet<Connection>();

/**
 * Does work with a service. Where it fails by a request, and the service is of another release, `tell` hears that, once
 * for each connection; the error stays as it is.
 */
export async function tellingRelease<T>(
  connection: () => Connection,
  tell: (line: string) => void,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const failed = requestIn(error);
    const line = failed && !told.has(connection()) && (await otherRelease(connection(), failed));
    if (line && !told.has(connection())) {
      told.add(connection());
      tell(line);
    }
    throw error;
  }
}

/** The failed request that an error is about. */
function requestIn(error: unknown): RequestError | undefined {
  if (error instanceof RequestError) return error;
  return error instanceof Error && error.cause !== undefined ? requestIn(error.cause) : undefined;
}
