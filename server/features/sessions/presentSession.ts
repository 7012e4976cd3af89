import { sessions as contract } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import type { Session, SessionEvent } from "../../db/generated/sqlite/client.ts";
import { readRows, type Sql, sql } from "../../db/sql/sql.ts";
import { inPieces, itemsOf, type ListInPieces, pieceTurns } from "../../http/limits/pieces.ts";
import type { Services } from "../../services.ts";
import { isAcceptable, isFull } from "../devices/deviceLimit.ts";
import { onlineSince } from "../devices/online.ts";
import { presentDevice } from "../devices/presentDevice.ts";
import { presenter, wireDate } from "../fields.ts";
import { tagNames, withTags } from "../tags/tagList.ts";
import { activeSince, isActive } from "./active.ts";

const stored = contract.session.omit({ device: true, events: true });

type WireSession = z.output<typeof contract.session>;
type WireEvents = WireSession["events"];

/**
 * The related rows that a query reads together with a session: the device and its tags. The wire format of a session
 * contains them.
 */
const withDevice = { device: { include: withTags } } as const;

/** An event type that occurs in a seat of a session. */
type EventKind = Pick<SessionEvent, "sessionUid" | "seat" | "type">;

/** Maximum number of events whose types one turn of the event loop reads. */
const EVENTS_AT_ONCE = 2000;

/** The event types of the next events in the index, and the number of these events. */
interface KindsRead {
  readonly kinds: readonly EventKind[];
  readonly events: number;
}

/** Reads the types of the next events in the order of the index: session, seat, type. */
async function readKinds(services: Services, where: Sql): Promise<KindsRead> {
  const rows = await readRows<EventKind & { events: number | bigint }>(
    services.db,
    sql`SELECT "sessionUid", "seat", "type", COUNT(*) AS "events"
      FROM (SELECT "sessionUid", "seat", "type" FROM "SessionEvent" WHERE ${where}
        ORDER BY "sessionUid", "seat", "type" LIMIT ${EVENTS_AT_ONCE}) AS next
      GROUP BY "sessionUid", "seat", "type" ORDER BY "sessionUid", "seat", "type"`,
  );
  return { kinds: rows, events: rows.reduce((sum, { events }) => sum + Number(events), 0) };
}

/**
 * Reads the event types of sessions in the order of the index. The query reads only the index. It reads the index in
 * pieces, because a session can have many events.
 */
async function* readAllKinds(
  services: Services,
  owner: string,
  uids: readonly string[],
): AsyncGenerator<readonly EventKind[]> {
  const remaining = new Set(uids);
  /** The last event type that was read. Undefined if all event types of its session have been read. */
  let last: EventKind | undefined;
  while (remaining.size > 0 || last !== undefined) {
    const { kinds, events } = await readKinds(
      services,
      last === undefined
        ? sql`"sessionUid" IN (${sql.list([...remaining])})`
        : sql`"sessionUid" = ${last.sessionUid} AND ("seat", "type") > (${last.seat}, ${last.type})`,
    );
    yield kinds;
    const isEnd = events < EVENTS_AT_ONCE;
    if (isEnd && last === undefined) return;
    for (const { sessionUid } of kinds) remaining.delete(sessionUid);
    last = isEnd ? undefined : kinds.at(-1);
    await pieceTurns.wait(owner);
  }
}

/**
 * A list of event types. It also refers to the longer lists that begin with the same types, so that seats with the same
 * types share one list.
 */
class TypeList {
  readonly types: string[];
  readonly #longer = new Map<string, TypeList>();

  constructor(types: string[] = []) {
    this.types = types;
  }

  /** Returns the list that has one more type. */
  and(type: string): TypeList {
    const known = this.#longer.get(type);
    if (known !== undefined) return known;
    const longer = new TypeList([...this.types, type]);
    this.#longer.set(type, longer);
    return longer;
  }
}

/** The seats of a session in ascending order, and the event types of each seat. */
interface Seats {
  readonly seats: number[];
  readonly types: TypeList[];
}

/** Returns the seats of several sessions, by the uid of the session. */
async function seatsOf(
  services: Services,
  owner: string,
  uids: readonly string[],
): Promise<Map<string, Seats>> {
  const bySession = new Map<string, Seats>();
  const none = new TypeList();
  for await (const kinds of readAllKinds(services, owner, uids)) {
    for (const { sessionUid, seat, type } of kinds) {
      let session = bySession.get(sessionUid);
      if (session === undefined) {
        session = { seats: [], types: [] };
        bySession.set(sessionUid, session);
      }
      const known = session.seats.at(-1) === seat ? session.types.pop() : undefined;
      if (known === undefined) session.seats.push(seat);
      session.types.push((known ?? none).and(type));
    }
  }
  return bySession;
}

/**
 * Returns events in wire format. The lists of seats and types contain no duplicates. The types of a seat are at the
 * same position as the seat (models section 7).
 */
const presentEvents = (seats: Seats | undefined, items: readonly SessionEvent[]): WireEvents => ({
  seats: seats?.seats ?? [],
  types: seats?.types.map(({ types }) => types) ?? [],
  items: items.map(({ type, at, data, seat }) => ({
    type,
    timestamp: wireDate(at),
    data: JSON.parse(data),
    seat,
  })),
});

/** Converts a session to its wire format, without the device and the events. */
const presentRow = presenter<Session, typeof stored, [active: boolean]>(stored, {
  active: (_, active) => active,
  position: ({ latitude, longitude }) => ({ latitude, longitude }),
});

/**
 * Converts sessions of one namespace to their wire format (models section 7), in the order of `uids`. Sessions that no
 * longer exist are omitted. `uids` must not be empty.
 * @param items the events of the session; omitted in lists
 */
export async function presentSessions(
  services: Services,
  tenantId: string,
  uids: readonly string[],
  items: readonly SessionEvent[] = [],
): Promise<ListInPieces<WireSession>> {
  const [namespace, rows, seats] = await Promise.all([
    services.db.namespace.findUniqueOrThrow({ where: { tenantId } }),
    services.db.session.findMany({ where: { uid: { in: [...uids] }, tenantId }, include: withDevice }),
    seatsOf(services, tenantId, uids),
  ]);
  const full = await isFull(services, namespace);
  const online = wireDate(onlineSince(services));
  const active = activeSince(services);
  const byUid = new Map(rows.map((row) => [row.uid, row]));
  const present = (uid: string): WireSession[] => {
    const row = byUid.get(uid);
    if (row === undefined) return [];
    const { device } = row;
    const acceptable = isAcceptable(services, device, full);
    const wire = {
      ...presentRow(row, isActive(row, active)),
      device: presentDevice(device, tagNames(device.tags), {
        namespace: namespace.name,
        onlineSince: online,
        acceptable,
      }),
      events: presentEvents(seats.get(uid), items),
    };
    return [wire];
  };
  const division = {
    owner: tenantId,
    sizeOf: (uid: string) => seats.get(uid)?.seats.length ?? 0,
    most: EVENTS_AT_ONCE,
  };
  return inPieces(uids, division, async (group) => group.flatMap(present));
}

/** Number of events whose sizes are read first. If these events already fill the page, no further sizes are read. */
const FIRST_SIZES = 50;

/** Returns the sizes of the data of a session's next events. The database finds the sizes without reading the data. */
async function readSizes(services: Services, uid: string, after: number, most: number): Promise<number[]> {
  const rows = await readRows<{ size: number | bigint }>(
    services.db,
    sql`SELECT OCTET_LENGTH("data") AS "size" FROM "SessionEvent"
      WHERE "sessionUid" = ${uid} AND "sequence" > ${after} ORDER BY "sequence" LIMIT ${most}`,
  );
  return rows.map(({ size }) => Number(size));
}

/**
 * Returns the number of events that fit into a page. The number is at least 1. Returns undefined if all events fit.
 */
function fitting(sizes: readonly number[]): number | undefined {
  let bytes = 0;
  const beyond = sizes.findIndex((size, index) => {
    bytes += size;
    return index > 0 && bytes > contract.EVENTS_PAGE_BYTES;
  });
  return beyond === -1 ? undefined : beyond;
}

/**
 * Reads a page of a session's events.
 * @param after number of events to skip before the page
 */
async function readEvents(
  services: Services,
  tenantId: string,
  uid: string,
  after: number,
): Promise<SessionEvent[]> {
  const first = await readSizes(services, uid, after, FIRST_SIZES);
  let take = fitting(first);
  // The sequence numbers of a session's events are consecutive.
  if (take === undefined && first.length === FIRST_SIZES) {
    const others = contract.EVENTS_PAGE - FIRST_SIZES;
    take = fitting([...first, ...(await readSizes(services, uid, after + FIRST_SIZES, others))]);
  }
  if (take !== undefined) await pieceTurns.wait(tenantId);
  return services.db.sessionEvent.findMany({
    where: { sessionUid: uid, sequence: { gt: after }, session: { tenantId } },
    orderBy: { sequence: "asc" },
    take: take ?? contract.EVENTS_PAGE,
  });
}

/**
 * Returns a session with a page of its events. The events are in the order in which they arrived. Returns undefined if
 * the session is not in the namespace.
 * @param after number of events to skip before the page
 */
export async function presentSession(
  services: Services,
  tenantId: string,
  uid: string,
  after = 0,
): Promise<WireSession | undefined> {
  const items = await readEvents(services, tenantId, uid, after);
  const [session] = await itemsOf(await presentSessions(services, tenantId, [uid], items));
  return session;
}
