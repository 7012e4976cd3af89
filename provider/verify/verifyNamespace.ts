import { type Client, GatehouseError, TransportError } from "@gatehouse-access/sdk";
import { EngineError } from "../engine/index.ts";
import { readNamespace } from "../namespace/readNamespace.ts";
import { inParallel } from "../parallel.ts";
import { deviceState, devicesOf } from "../resources/device.ts";
import { devices as enrolled } from "../resources/deviceSelector.ts";
import { lastPolicyChange, type PolicyChange } from "../service/auditTrail.ts";
import type { Connection } from "../service/connection.ts";
import { type Device, isUnreadable, type Listing } from "../service/listings.ts";
import { counted, instantText } from "../words.ts";
import { compareSessions, type Session } from "./compareSessions.ts";
import type { Verification } from "./verification.ts";

/** The options of {@link verifyNamespace}. */
export interface VerificationOptions {
  /**
   * Start of the compared period. Sessions that started earlier are not compared. Required if the last change to the
   * policy is not known.
   */
  readonly since: Date | undefined;
  /** Maximum number of compared sessions. */
  readonly maxSessions: number;
}

/** Maximum number of concurrent requests for devices. */
const PARALLEL = 16;

/** Maximum number of attempts to read a policy that other clients change at the same time. */
const ATTEMPTS = 3;

/**
 * Compares the logins that the service allowed with the policy of the namespace. The compared period begins at the last
 * change to the policy, or at `since` if that is later.
 * @throws EngineError (`usage`) if the last change is not known and `since` is omitted, or if `since` is in the future;
 *   RequestError if the sessions or the policy cannot be read
 */
export async function verifyNamespace(
  connection: Connection,
  { since, maxSessions }: VerificationOptions,
): Promise<Verification> {
  if (since && since > new Date()) {
    throw new EngineError("usage", `is in the future: ${instantText(since.toISOString())}`, {
      field: ["--since"],
      remedy: "Check the time and its offset from UTC.",
    });
  }
  const opened = await connection.tenant(undefined);
  const { client, tenant } = opened;
  const { isOwn } = await connection.server(tenant);
  for (let attempt = 1; ; attempt += 1) {
    if (attempt > 1) await connection.forget();
    const until = new Date().toISOString();
    const trail = await readTrail(client, tenant, isOwn, since);
    const period = periodOf(trail, since);
    const estate = await readNamespace(connection, tenant);
    const devices = devicesOf(estate).map(deviceState);
    const { sessions, notEvaluated } = await readSessions(client, period.since, maxSessions);
    const others = await otherDevices(opened.listing(enrolled), devices, sessions);
    const { lastChange } = trail;
    // If the policy changes during the check, the policy that the command read can be outdated.
    const isChanged = (await readTrail(client, tenant, isOwn, since)).lastChange?.entry !== lastChange?.entry;
    if (isChanged && attempt < ATTEMPTS) continue;
    const comparison = compareSessions({
      estate: { policy: estate.policy, accessUnknown: estate.accessUnknown, devices },
      sessions: isChanged ? [] : sessions,
      otherDevices: others.devices,
      unreadDevices: others.unread,
      storesKeys: isOwn === true,
      lastChange: lastChange && new Date(lastChange.at),
    });
    return {
      version: 1,
      service: client.url,
      namespace: tenant,
      name: estate.name,
      since: period.since.toISOString(),
      until,
      lastChange: lastChange?.note ?? null,
      ...comparison,
      notEvaluated: [
        ...(isChanged ? [`the policy changed during the check, ${ATTEMPTS} times in a row`] : []),
        ...estate.notEvaluated,
        ...notEvaluated,
        ...comparison.notEvaluated,
      ],
      notes: [...period.notes, ...estate.unknown.map((sentence) => `Not known: ${sentence}`)],
    };
  }
}

/** The last change to the policy according to the audit trail. */
interface Trail {
  /** The last change. Undefined if it is not known, or if the policy did not change after the start of the search. */
  readonly lastChange: PolicyChange | undefined;
  /** The reason why the audit trail does not show the last change, as a sentence. */
  readonly missing: string | undefined;
}

async function readTrail(
  client: Client,
  tenant: string,
  isOwn: boolean | undefined,
  since: Date | undefined,
): Promise<Trail> {
  const without = (missing: string): Trail => ({ lastChange: undefined, missing });
  if (isOwn === false) return without("the server has no audit trail");
  try {
    const lastChange = await lastPolicyChange(client, tenant, since);
    if (lastChange !== "unknown") return { lastChange, missing: undefined };
    return without("the latest entries of the audit trail contain no change of the policy");
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    return without(`the audit trail could not be read: ${error.message}`);
  }
}

/**
 * Returns the compared period. @throws EngineError (`usage`) if the last change is not known and `since` is omitted
 */
function periodOf(
  { lastChange, missing }: Trail,
  since: Date | undefined,
): { readonly since: Date; readonly notes: string[] } {
  const changed = lastChange && new Date(lastChange.at);
  if (!changed && !since) {
    const why = missing ?? "the audit trail contains no change of the policy";
    throw new EngineError(
      "usage",
      `is required, because the last change of the policy is not known (${why})`,
      {
        field: ["--since"],
        remedy: "Set --since to a time after the last change, such as 2026-12-01T18:00Z.",
      },
    );
  }
  if (changed && (!since || since < changed)) {
    const note = `Only the logins since the last change of the policy, ${instantText(changed.toISOString())}, are compared, not all logins since --since.`;
    return { since: changed, notes: since ? [note] : [] };
  }
  const note = `The last change of the policy is not known: ${missing}. If the policy changed after --since, earlier logins may be reported as differences.`;
  return { since: since ?? new Date(), notes: missing === undefined ? [] : [note] };
}

/**
 * Reads the sessions that started after a given time, latest first. `notEvaluated` contains notes on sessions that may
 * be missing.
 * @param most maximum number of sessions
 */
async function readSessions(client: Client, since: Date, most: number) {
  const sessions = new Map<string, Session>();
  const known = new Set<string>();
  let earliest: string | undefined;
  let isOrdered = true;
  for await (const { items } of client.pages("getSessions", { query: { perPage: 100 } })) {
    let isOver = false;
    for (const session of items) {
      const { uid, startedAt } = session;
      // If a session starts while the pages are read, it shifts the other sessions, so that a session can occur on two
      // pages.
      if (known.has(uid)) continue;
      known.add(uid);
      const begun = new Date(startedAt);
      if (earliest !== undefined && begun > new Date(earliest)) isOrdered = false;
      earliest = startedAt;
      if (begun < since) isOver = true;
      else sessions.set(uid, session);
    }
    if (isOver || sessions.size > most) break;
  }
  const notEvaluated = [
    ...(isOrdered
      ? []
      : [
          "the server does not list the sessions in the order of their start, so that sessions may be missing",
        ]),
    ...(sessions.size > most
      ? [
          `more than ${counted(most, "session")} began since ${instantText(since.toISOString())}; only the latest ${most} were compared (--max-sessions)`,
        ]
      : []),
  ];
  return { sessions: [...sessions.values()].slice(0, most), notEvaluated };
}

/**
 * Reads the devices of sessions that are not in the list of devices. For example, containers have a separate list.
 * @returns the devices that exist, and in `unread` the reason for each device that could not be read, by uid
 * @throws TransportError if the service does not respond
 */
export async function otherDevices(
  devices: Pick<Listing<Device>, "find">,
  listed: readonly Pick<Device, "uid">[],
  sessions: readonly Pick<Session, "deviceUid">[],
): Promise<{ readonly devices: Device[]; readonly unread: ReadonlyMap<string, string> }> {
  const known = new Set(listed.map(({ uid }) => uid));
  const others = new Set(sessions.map(({ deviceUid }) => deviceUid).filter((uid) => !known.has(uid)));
  const unread = new Map<string, string>();
  const found = await inParallel([...others], PARALLEL, (uid) =>
    devices.find(uid).catch((error: unknown) => {
      // The service did not respond, so the rest of the comparison would also fail.
      if (!(error instanceof GatehouseError) || error instanceof TransportError) throw error;
      // Uses only the detail of the message, since the other parts differ for each device. Sessions with the same
      // reason share a sentence.
      unread.set(uid, `the device could not be read: ${error.detail}`);
      return undefined;
    }),
  );
  return { devices: found.filter((device) => device !== undefined), unread };
}
