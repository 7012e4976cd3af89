import { setImmediate as nextTurn } from "node:timers/promises";
import { sessions as contract } from "@gatehouse-access/sdk/contract";
import { beforeEach, expect, test } from "vitest";
import { pieceTurns } from "../../../server/http/limits/pieces.ts";
import { withAppAndUser } from "../http/appOfTest.ts";
import { enroll } from "../http/testApp.ts";

const { app, ana } = withAppAndUser();
let device: string;
beforeEach(async () => {
  ({ uid: device } = await enroll(app, ana.tenant, "00:00:00:00:00:01"));
});

const uidOf = (index: number): string => index.toString(16).padStart(64, "0");

/** Adds sessions with the given events, in the order of arrival. */
async function addSessions(
  events: readonly { seat: number; type: string; data?: object }[][],
): Promise<void> {
  const { db } = app.services;
  for (const [index, own] of events.entries()) {
    const sessionUid = uidOf(index);
    const at = new Date(app.services.now().getTime() + index);
    const login = {
      deviceUid: device,
      username: "root",
      ipAddress: "127.0.0.1",
      startedAt: at,
      lastSeen: at,
    };
    await db.session.create({
      data: { ...login, uid: sessionUid, tenantId: ana.tenant, type: "exec", term: "none" },
    });
    await db.sessionEvent.createMany({
      data: own.map(({ seat, type, data = {} }, position) => {
        return { sessionUid, sequence: position + 1, seat, type, at, data: JSON.stringify(data) };
      }),
    });
  }
}

const repeated = <T>(count: number, item: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => item(index));

/** Waits for a response, and counts the turns of the event loop in which a piece of ana's lists waits. */
async function waitingTurns<T>(work: Promise<T>): Promise<{ result: T; turns: number }> {
  let turns = 0;
  let isSettled = false;
  const settled = work.finally(() => {
    isSettled = true;
  });
  while (!isSettled) {
    await nextTurn();
    if (pieceTurns.isWaiting(ana.tenant)) turns += 1;
  }
  return { result: await settled, turns };
}

test("a list of sessions has the types of all seats of sessions with many events", async () => {
  const types = ["exec", "exit-status", "pty-req"];
  const channels = (count: number) =>
    repeated(count * types.length, (index) => {
      return { seat: Math.floor(index / types.length), type: types[index % types.length] ?? "" };
    });
  // The first events of the second session end exactly at the limit of a query.
  const repeatedTransfers = repeated(2500, () => ({ seat: 0, type: "transfer" }));
  await addSessions([
    channels(1000),
    repeated(2000, (seat) => ({ seat, type: "shell" })),
    [],
    [...repeatedTransfers, { seat: 7, type: "exec" }],
    [{ seat: 2, type: "shell" }],
    channels(700),
  ]);
  const { body } = await ana.call("getSessions");
  const events = body.map((session: { events: object }) => session.events).reverse();
  const seatsOf = (count: number) => repeated(count, (seat) => seat);
  expect(events).toEqual([
    { seats: seatsOf(1000), types: repeated(1000, () => types), items: [] },
    { seats: seatsOf(2000), types: repeated(2000, () => ["shell"]), items: [] },
    { seats: [], types: [], items: [] },
    { seats: [0, 7], types: [["transfer"], ["exec"]], items: [] },
    { seats: [2], types: [["shell"]], items: [] },
    { seats: seatsOf(700), types: repeated(700, () => types), items: [] },
  ]);
});

test("pages of events end by the size of their data, and continue without gaps", async () => {
  const size = contract.EVENTS_PAGE_BYTES / 4;
  const event = (index: number) => ({
    seat: index,
    type: "exec",
    data: { command: "x".repeat(index === 5 ? 8 * size : size) },
  });
  await addSessions([repeated(10, event)]);
  const pages: number[][] = [];
  for (let after = 0; ; ) {
    const { body } = await ana.call("getSession", {
      params: { uid: uidOf(0) },
      query: { events_after: after },
    });
    const items = body.events.items as { seat: number }[];
    if (items.length === 0) break;
    pages.push(items.map(({ seat }) => seat));
    after += items.length;
  }
  expect(pages).toEqual([[0, 1, 2], [3, 4], [5], [6, 7, 8], [9]]);
});

test("a page of many events ends by the size of their data", async () => {
  const data = { command: "x".repeat(1024) };
  await addSessions([repeated(300, (seat) => ({ seat, type: "exec", data }))]);
  const read = async (after: number): Promise<number> => {
    const query = { events_after: after };
    const { body } = await ana.call("getSession", { params: { uid: uidOf(0) }, query });
    return body.events.items.length;
  };
  const fitting = Math.floor(contract.EVENTS_PAGE_BYTES / JSON.stringify(data).length);
  expect([await read(0), await read(fitting), await read(300)]).toEqual([fitting, 300 - fitting, 0]);
});

test("a page of large audit entries takes several turns of the event loop, and has all entries in order", async () => {
  const large = (index: number) => JSON.stringify({ number: index, text: "ä".repeat(50_000) });
  await app.services.db.auditEntry.createMany({
    data: repeated(20, (index) => ({
      tenantId: ana.tenant,
      at: app.services.now(),
      requestId: "request",
      address: "127.0.0.1",
      actorKind: "user",
      actorId: ana.id,
      actorName: "ana",
      operation: "editNamespace",
      objectKind: "namespace",
      objectId: `large-${index}`,
      before: null,
      after: large(index),
    })),
  });
  const { result, turns } = await waitingTurns(
    app.send("GET", `/api/namespaces/${ana.tenant}/audit?per_page=100`, {
      headers: { authorization: `Bearer ${ana.token}` },
    }),
  );
  const { text } = result;
  expect(result.headers.get("content-length")).toBe(String(Buffer.byteLength(text)));
  const entries = (JSON.parse(text) as { object: { id: string }; after: object }[]).filter(({ object }) =>
    object.id.startsWith("large-"),
  );
  expect(entries.map(({ object }) => object.id)).toEqual(repeated(20, (index) => `large-${19 - index}`));
  expect(entries.map(({ after }) => JSON.stringify(after))).toEqual(
    repeated(20, (index) => large(19 - index)),
  );
  // Each entry is a piece that is read in one turn and serialized in another turn.
  expect(turns).toBeGreaterThan(20);
});
