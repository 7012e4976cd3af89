import { sessions as contract } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import type { Session, SessionEvent } from "../../db/generated/sqlite/client.ts";
import type { Services } from "../../services.ts";
import { isAcceptable, isFull } from "../devices/deviceLimit.ts";
import { onlineSince } from "../devices/online.ts";
import { presentDevice } from "../devices/presentDevice.ts";
import { tagNames, withTags } from "../tags/tagList.ts";
import { wireDate } from "../wireDate.ts";
import { activeSince, isActive } from "./active.ts";

type WireSession = z.output<typeof contract.session>;
type WireEvents = WireSession["events"];

/** The related rows (the device and its tags) that are read with a session, because its wire format contains them. */
const withDevice = { device: { include: withTags } } as const;

/** An event type that occurs on a seat of a session. */
type EventKind = Pick<SessionEvent, "sessionUid" | "seat" | "type">;

/** Returns the event types of several sessions. The query reads only an index. */
async function eventKindsOf(services: Services, uids: readonly string[]): Promise<EventKind[]> {
  const kinds = await services.db.sessionEvent.groupBy({
    by: ["sessionUid", "seat", "type"],
    where: { sessionUid: { in: [...uids] } },
    orderBy: [{ sessionUid: "asc" }, { seat: "asc" }, { type: "asc" }],
  });
  return kinds;
}

/**
 * Returns events in wire format. The lists of seats and types contain no duplicates. A seat and its types have the same
 * position in their lists (models section 7).
 */
function presentEvents(kinds: readonly EventKind[], items: readonly SessionEvent[]): WireEvents {
  const bySeat = Map.groupBy(kinds, ({ seat }) => seat);
  return {
    seats: [...bySeat.keys()],
    types: [...bySeat.values()].map((ofSeat) => ofSeat.map(({ type }) => type)),
    items: items.map(({ type, at, data, seat }) => ({
      type,
      timestamp: wireDate(at),
      data: JSON.parse(data),
      seat,
    })),
  };
}

const presentRow = (row: Session, active: boolean): Omit<WireSession, "device" | "events"> => ({
  uid: row.uid,
  device_uid: row.deviceUid,
  tenant_id: row.tenantId,
  username: row.username,
  ip_address: row.ipAddress,
  started_at: wireDate(row.startedAt),
  last_seen: wireDate(row.lastSeen),
  active,
  authenticated: row.authenticated,
  recorded: row.recorded,
  type: row.type,
  term: row.term,
  position: { latitude: row.latitude, longitude: row.longitude },
  ...(row.keyFingerprint !== null && { key_fingerprint: row.keyFingerprint }),
  ...(row.userId !== null && { user_id: row.userId }),
});

/**
 * Converts sessions of one namespace to their wire format (models section 7), in the order of their ids. Sessions that
 * no longer exist are omitted.
 * @param items the sessions' events; omitted in lists
 */
export async function presentSessions(
  services: Services,
  tenantId: string,
  uids: readonly string[],
  items: readonly SessionEvent[] = [],
): Promise<WireSession[]> {
  if (uids.length === 0) return [];
  const [namespace, rows, kinds] = await Promise.all([
    services.db.namespace.findUniqueOrThrow({ where: { tenantId } }),
    services.db.session.findMany({ where: { uid: { in: [...uids] }, tenantId }, include: withDevice }),
    eventKindsOf(services, uids),
  ]);
  const full = await isFull(services, namespace);
  const online = wireDate(onlineSince(services));
  const active = activeSince(services);
  const byUid = new Map(rows.map((row) => [row.uid, row]));
  const kindsOf = Map.groupBy(kinds, ({ sessionUid }) => sessionUid);
  return uids.flatMap((uid) => {
    const row = byUid.get(uid);
    if (row === undefined) return [];
    const { device } = row;
    const acceptable = isAcceptable(services, device, full);
    return {
      ...presentRow(row, isActive(row, active)),
      device: presentDevice(device, tagNames(device.tags), {
        namespace: namespace.name,
        onlineSince: online,
        acceptable,
      }),
      events: presentEvents(kindsOf.get(uid) ?? [], items),
    };
  });
}

/**
 * Returns a session with a page of its events, in order of arrival. Returns undefined if the namespace has no such
 * session.
 * @param after number of events to skip before the page
 */
export async function presentSession(
  services: Services,
  tenantId: string,
  uid: string,
  after = 0,
): Promise<WireSession | undefined> {
  const items = await services.db.sessionEvent.findMany({
    where: { sessionUid: uid, sequence: { gt: after }, session: { tenantId } },
    orderBy: { sequence: "asc" },
    take: contract.EVENTS_PAGE,
  });
  const [session] = await presentSessions(services, tenantId, [uid], items);
  return session;
}
