import { randomBytes } from "node:crypto";
import { request } from "node:http";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { pieceTurns } from "../../../server/http/limits/pieces.ts";
import { expectError, NOT_FOUND } from "../http/answers.ts";
import { withAppAndUser, withInternalApp } from "../http/appOfTest.ts";
import { acceptedDevice } from "../http/fixtures.ts";
import { type CallOptions, enroll, enrollProven, valuesOf } from "../http/testApp.ts";

let device: string;
let deviceToken: string;
let uid: string;

const { app, ana } = withAppAndUser();
const internal = withInternalApp(app);
beforeEach(async () => {
  app.stopClock();
  ({ uid: device, token: deviceToken } = await acceptedDevice(app, ana, "edge-1", enrollProven));
  uid = await begin();
});

async function begin(): Promise<string> {
  const body = {
    uid: randomBytes(32).toString("hex"),
    device_uid: device,
    username: "root",
    ip_address: "198.51.100.4",
  };
  expect((await internal.call("createSession", { body })).status).toBe(200);
  return body.uid;
}

const chunk = (message: string, more: object = {}) => ({
  uid,
  seat: 0,
  message,
  width: 80,
  height: 24,
  ...more,
});
const record = (message: string, more: object = {}, options: CallOptions = { token: ana.token }) =>
  app.call("recordSession", { params: { uid, seat: "0" }, body: chunk(message, more), ...options });
const play = (options: CallOptions = {}) =>
  app.call("getSessionRecord", { token: ana.token, params: { uid, seat: "0" }, ...options });
const recorded = async () => (await ana.call("getSession", { params: { uid } })).body.recorded as boolean;
const setRecording = (on: boolean) => ana.call("setSessionRecord", { body: { session_record: on } });
/** Requests the recording with the given Accept header. */
const playAs = (accept: string) =>
  app.send("GET", `/api/sessions/${uid}/records/0`, {
    headers: { authorization: `Bearer ${ana.token}`, accept },
  });
const linesOf = (text: string) =>
  text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

/** Output with characters that JSON escapes, that databases reject, or that are invalid in UTF-16. */
const OUTPUT = ["$ ls\r\n", "\u001b[31m漢字🚪\u0000", "half \ud83d", '"\\', ""];

async function recordOutput(): Promise<void> {
  for (const [index, message] of OUTPUT.entries()) {
    expect((await record(message, index === 2 ? { width: 4_294_967_295 } : {})).status).toBe(200);
    app.pass(1.5);
  }
}

describe("a recording", () => {
  test("is returned unchanged, in the order of time", async () => {
    const begun = app.services.now().getTime();
    expect(await recorded()).toBe(false);
    await recordOutput();
    expect(await recorded()).toBe(true);
    const { body, headers } = await play();
    expect(headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(body).toEqual(
      OUTPUT.map((message, index) => ({
        ...chunk(message),
        width: index === 2 ? 4_294_967_295 : 80,
        tenant_id: ana.tenant,
        time: new Date(begun + index * 1500).toISOString(),
      })),
    );
  });

  test("is asciicast text on request", { tags: ["long"] }, async () => {
    const timestamp = app.services.now().getTime() / 1000;
    await recordOutput();
    const { status, text, headers } = await playAs("application/x-asciicast; q=0.9, */*");
    expect([status, headers.get("content-type")]).toEqual([200, "application/x-asciicast"]);
    expect(linesOf(text)).toEqual([
      { version: 2, width: 80, height: 24, timestamp },
      [0, "o", OUTPUT[0]],
      [1.5, "o", OUTPUT[1]],
      [1.5, "r", "4294967295x24"],
      [3, "o", OUTPUT[2]],
      [3, "r", "80x24"],
      [4.5, "o", OUTPUT[3]],
      [6, "o", OUTPUT[4]],
    ]);
  });

  const JSON_TEXT = "application/json; charset=utf-8";
  test.each([
    [
      "text/plain; charset=utf-8",
      // The console sends the first of these Accept headers.
      "application/json, text/plain, */*",
      "text/plain",
      "TEXT/Plain;charset=utf-8",
      "text/plain;q=0.5, application/json;q=0.4",
      "text/plain;q=0.9, application/x-asciicast;q=0.8",
    ],
    [
      "application/x-asciicast",
      "text/plain, application/x-asciicast",
      "text/plain;q=0, application/x-asciicast;q=0.001",
    ],
    [
      JSON_TEXT,
      "*/*",
      "",
      "text/*",
      "application/json",
      "application/json, text/plain;q=0",
      "text/plain;q=0.000, */*",
      "application/json, text/plain;q=0.9",
      "text/plain;q=nonsense, */*",
    ],
  ])("is %s for clients that prefer it", async (type, ...accepted) => {
    await record("first");
    for (const accept of accepted) {
      const { status, headers, text } = await playAs(accept);
      expect([status, headers.get("content-type")], accept).toEqual([200, type]);
      expect([headers.get("vary"), headers.get("x-content-type-options")]).toEqual(["Accept", "nosniff"]);
      // The JSON response is one JSON value. The response for players has one JSON value per line, and is therefore
      // invalid as a whole. A client cannot confuse the two formats.
      if (type === JSON_TEXT) expect(JSON.parse(text)).toMatchObject([{ message: "first" }]);
      else expect(() => JSON.parse(text)).toThrow(SyntaxError);
    }
  });

  test("is the array without an Accept header, and has Vary", async () => {
    await record("first");
    const { port } = new URL(app.url);
    const path = `/api/sessions/${uid}/records/0`;
    const headers = { authorization: `Bearer ${ana.token}` };
    const type = await new Promise<unknown>((resolve, reject) => {
      request({ port, path, headers, agent: false }, (response) => {
        response.resume().on("end", () => resolve([response.headers["content-type"], response.headers.vary]));
      })
        .on("error", reject)
        .end();
    });
    expect(type).toEqual([JSON_TEXT, "Accept"]);
  });

  test("is complete at any length", async () => {
    await app.services.db.sessionRecord.createMany({
      data: Array.from({ length: 250 }, (_, index) => ({
        sessionUid: uid,
        seat: 0,
        sequence: index + 1,
        time: app.services.now(),
        message: JSON.stringify(`line ${index}`),
        width: 80n,
        height: 24n,
      })),
    });
    const { body } = await play();
    expect(valuesOf(body, "message")).toEqual(Array.from({ length: 250 }, (_, index) => `line ${index}`));
  });

  test("is read in batches, each in a separate turn of the event loop, so that other requests run between them", {
    tags: ["long"],
  }, async () => {
    for (let index = 0; index < 60; index += 1) await record("x".repeat(16 * 1024));
    let turn = 0;
    const count = () => {
      turn += 1;
      next = setImmediate(count);
    };
    let next = setImmediate(count);
    const turns: number[] = [];
    const { sessionRecord } = app.services.db;
    const read = sessionRecord.findMany.bind(sessionRecord);
    const spy = vi.spyOn(sessionRecord, "findMany").mockImplementation(((
      ...args: Parameters<typeof read>
    ) => {
      turns.push(turn);
      return read(...args);
    }) as typeof sessionRecord.findMany);
    try {
      const played = await Promise.all(Array.from({ length: 3 }, () => play()));
      expect(played.map(({ body }) => body.length)).toEqual([60, 60, 60]);
    } finally {
      clearImmediate(next);
      spy.mockRestore();
    }
    expect(turns.length).toBeGreaterThanOrEqual(3 * 4);
    expect(new Set(turns).size).toBe(turns.length);
  });

  test("has a seat for each channel, which can be deleted separately", async () => {
    await record("one");
    const params = { uid, seat: "7" };
    const body = chunk("two", { seat: 7 });
    expect((await internal.call("storeSessionRecord", { params, body })).status).toBe(200);
    expect((await play({ params })).body).toMatchObject([{ message: "two", seat: 7 }]);
    const remove = (seat: string) => ana.call("deleteSessionRecord", { params: { uid, seat } });
    expect((await remove("0")).status).toBe(200);
    expect((await remove("0")).status).toBe(404);
    expect((await play()).status).toBe(404);
    expect(await recorded()).toBe(true);
    expect((await remove("7")).status).toBe(200);
    expect(await recorded()).toBe(false);
    const trail = await ana.call("getAuditTrail", { query: { kind: "session" } });
    expect(valuesOf(trail.body, "before")).toEqual([{ recorded_seat: 7 }, { recorded_seat: 0 }]);
  });

  test("accepts output of the session's own device only", async () => {
    const neighbor = await enrollProven(app, ana.tenant, "00:00:00:00:00:02");
    expect((await record("x", {}, { token: neighbor.token })).status).toBe(404);
    expect((await record("x", {}, { token: deviceToken })).status).toBe(200);
    expect((await play({ token: deviceToken })).status).toBe(403);
  });

  test("rejects output of a device that has not proven its key", async () => {
    const { token } = await enroll(app, ana.tenant, "00:00:00:00:00:02");
    expect((await record("x", {}, { token })).status).toBe(403);
    expect((await play()).status).toBe(404);
  });

  test("marks a command's standard error", async () => {
    await record("out");
    await record("err", { stream: "stderr" });
    await record("out again");
    expect(valuesOf((await play()).body, "stream")).toEqual([undefined, "stderr", undefined]);
    const { text } = await playAs("text/plain");
    const events = linesOf(text)
      .slice(1)
      .map((line) => line.slice(1));
    expect(events).toEqual([
      ["o", "out"],
      ["m", "stderr"],
      ["o", "err"],
      ["m", "stdout"],
      ["o", "out again"],
    ]);
  });
});

describe("recording is refused", () => {
  test("if it is off in the namespace", async () => {
    const status = async () => (await ana.call("getSessionRecordStatus")).body;
    expect(await status()).toBe(true);
    await setRecording(false);
    expect(await status()).toBe(false);
    expect((await record("x")).body.message).toBe("the namespace does not record sessions");
    await setRecording(true);
    expect((await record("x")).status).toBe(200);
  });

  test("beyond the limit, for chunks of any size and in spite of deletions", { tags: ["long"] }, async () => {
    const message = "x".repeat(32 * 1024);
    const answers: number[] = [];
    for (let n = 0; n < 32; n += 1) answers.push((await record(message)).status);
    // This service allows 1 MiB for each recording. A stored chunk counts as slightly more than its text, so 32 chunks
    // of 32 KiB exceed the limit.
    expect(answers).toEqual([...Array(31).fill(200), 403]);
    await app.services.db.session.update({ where: { uid }, data: { recordedSize: 1024 * 1024 } });
    expectError(await record(""), 403, "a session's recording can have at most 1 MiB");
    await ana.call("deleteSessionRecord", { params: { uid, seat: "0" } });
    expect((await record("")).status).toBe(403);
  });

  test("after the end of a session, except for delayed output", async () => {
    await internal.call("finishSession", { params: { uid } });
    app.pass(60);
    expect((await record("late")).status).toBe(200);
    app.pass(30);
    expect((await record("too late")).body.message).toBe("the session has ended");
  });

  test("for another seat or session than in the path, without a message, or with a width below 0", async () => {
    for (const [more, message] of [
      [{ seat: 1 }, "seat must match the seat in the path"],
      [{ uid: "0".repeat(64) }, "uid must match the session in the path"],
      [{ message: undefined }, "message is required and must be a string"],
      [{ width: -1 }, "width must be at least 0"],
    ] as const) {
      expectError(await record("x", more), 422, message);
    }
  });

  test("for a seat other than a number from 0 to 9999", async () => {
    const message = "seat: no such object exists; the value must be a whole number from 0 to 9999";
    for (const seat of ["x", "-1", "01", "10000"]) {
      expectError(
        await ana.call("recordSession", { params: { uid, seat }, body: chunk("x") }),
        404,
        message,
        { ...NOT_FOUND, label: seat },
      );
    }
  });
});

test("keeps all concurrent chunks", async () => {
  const messages = Array.from({ length: 12 }, (_, index) => `line ${index}`);
  const answers = await Promise.all(messages.map((message) => record(message)));
  expect(answers.map(({ status }) => status)).toEqual(messages.map(() => 200));
  const { body } = await play();
  expect(valuesOf(body, "message").sort()).toEqual([...messages].sort());
});

test("a chunk is stored in its own turn of the namespace", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const wait = vi.spyOn(pieceTurns, "wait").mockReturnValueOnce(promise);
  onTestFinished(() => wait.mockRestore());
  const answer = record("late");
  await vi.waitFor(() => expect(wait).toHaveBeenCalledWith(ana.tenant));
  expect(await app.services.db.sessionRecord.count({ where: { sessionUid: uid } })).toBe(0);
  resolve();
  expect((await answer).status).toBe(200);
  expect(await app.services.db.sessionRecord.count({ where: { sessionUid: uid } })).toBe(1);
});
