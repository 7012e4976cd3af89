import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { request } from "node:http";
import { Writable } from "node:stream";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { startAddingProxy } from "../../support/proxy.ts";
import { expectError } from "../http/answers.ts";
import { withAppAndUser, withInternalApp } from "../http/appOfTest.ts";
import { acceptedDevice, replacing } from "../http/fixtures.ts";
import { INTERNAL_TOKEN, startInternalApp } from "../http/internalTestApp.ts";
import { openConnection } from "../http/rawConnection.ts";
import { valuesOf } from "../http/testApp.ts";

let device: string;
let uid: string;
const sockets: WebSocket[] = [];

const { app, ana } = withAppAndUser();
const internal = withInternalApp(app);
beforeEach(async () => {
  app.stopClock();
  ({ uid: device } = await acceptedDevice(app, ana, "edge-1"));
  uid = randomBytes(32).toString("hex");
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.terminate();
});

const begin = async (at: string = internal.url) => {
  const response = await fetch(`${at}/internal/sessions`, {
    method: "POST",
    headers: { "content-type": "application/json", "X-Internal-Token": INTERNAL_TOKEN },
    body: JSON.stringify({
      uid,
      device_uid: device,
      username: "root",
      ip_address: "198.51.100.4",
      type: "none",
      term: "none",
    }),
  });
  expect(response.status).toBe(200);
};

const TOKEN = { "X-Internal-Token": INTERNAL_TOKEN };

/** Opens a WebSocket for the session's events as a Go program does: without extensions. */
function stream(
  at: string = internal.url,
  headers: Record<string, string> = TOKEN,
  path = `/internal/sessions/${uid}/events`,
): WebSocket {
  const socket = new WebSocket(at.replace("http:", "ws:") + path, { headers, perMessageDeflate: false });
  // A refused or closed WebSocket can also emit an error. The tests check only the closing.
  socket.on("error", () => {});
  sockets.push(socket);
  return socket;
}

async function opened(...given: Parameters<typeof stream>): Promise<WebSocket> {
  const socket = stream(...given);
  await once(socket, "open");
  return socket;
}

/** Returns the status of the response that refuses a WebSocket. */
async function refusal(...given: Parameters<typeof stream>): Promise<number> {
  const [, response] = await once(stream(...given), "unexpected-response");
  return response.statusCode;
}

const closing = async (socket: WebSocket): Promise<[number, string]> => {
  const [code, reason] = await once(socket, "close");
  return [code, String(reason)];
};

const event = (type: string, data: unknown, seat = 0) =>
  JSON.stringify({ session: uid, type, timestamp: "2025-06-02T16:00:01.123456789+02:00", data, seat });
const items = async () => (await ana.call("getSession", { params: { uid } })).body.events.items;
const types = async () => valuesOf(await items(), "type");
const base64 = (text: string) => Buffer.from(text).toString("base64");

test("accepts a recorded login of the SSH service of 0.19, which sends no token, through a proxy that adds it", async () => {
  const proxy = await startAddingProxy(internal.url, TOKEN);
  const call = (method: string, path: string, body?: object) =>
    fetch(`${proxy.url}/internal/sessions/${uid}${path}`, {
      method,
      ...(body && { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
    });
  // The SSH service opens the stream of events before it creates the session.
  const socket = await opened(proxy.url, {});
  await begin(proxy.url);
  const authenticated = { recorded: null, authenticated: true, type: null };
  expect((await call("PATCH", "", authenticated)).status).toBe(200);
  socket.send(
    event("pty-req", { term: "xterm", columns: 120, rows: 40, width: 0, height: 0, modelist: "gQ==" }),
  );
  socket.send(event("shell", null));
  const recorded = { recorded: true, authenticated: null, type: null };
  expect((await call("PATCH", "", recorded)).status).toBe(200);
  socket.send(event("pty-output", { output: "$ \u001b[1m\u0000" }));
  socket.send(event("window-change", { columns: 80, rows: 24, width: 0, height: 0 }));
  socket.send(event("pty-output", { output: "ls\r\n" }));
  socket.send(event("exec", base64("\0\0\0\u0002ls"), 1));
  socket.send(event("pty-output", { output: "a file\n" }, 1));
  socket.send(event("exit-status", "", 1));
  expect((await call("POST", "/finish")).status).toBe(200);
  // The client closes the connection without a close frame, as the SSH service of version 0.19 does. The service still
  // stores the messages that the client sent before.
  socket.terminate();
  await expect.poll(types).toEqual(["pty-req", "shell", "window-change", "exec", "exit-status"]);
  for (const seat of [0, 1, 2, 0]) {
    const end = await call("POST", `/records/${seat}`);
    expect([end.status, await end.text()]).toEqual([200, ""]);
  }
  await proxy.stop();

  const { body } = await ana.call("getSession", { params: { uid } });
  expect(body).toMatchObject({ authenticated: true, recorded: true, type: "none", active: false });
  expect(valuesOf(body.events.items, "data")).toEqual([
    { term: "xterm", columns: 120, rows: 40, width: 0, height: 0, modelist: "gQ==" },
    {},
    { columns: 80, rows: 24, width: 0, height: 0 },
    { payload: base64("\0\0\0\u0002ls") },
    {},
  ]);
  expect(body.events.items[0].timestamp).toBe("2025-06-02T14:00:01.123Z");
  const headers = {
    authorization: `Bearer ${ana.token}`,
    accept: "application/json, text/plain, */*",
  };
  const cast = async (seat: number) => {
    const { text } = await app.send("GET", `/api/sessions/${uid}/records/${seat}`, { headers });
    return text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
  };
  const timestamp = app.services.now().getTime() / 1000;
  expect(await cast(0)).toEqual([
    { version: 2, width: 120, height: 40, timestamp },
    [0, "o", "$ \u001b[1m\u0000"],
    [0, "r", "80x24"],
    [0, "o", "ls\r\n"],
  ]);
  expect((await cast(1))[0]).toEqual({ version: 2, width: 80, height: 24, timestamp });
});

test("accepts the end of a recording twice, and answers 404 for an unknown session", async () => {
  const end = (body?: string) =>
    internal.send("POST", `/internal/sessions/${uid}/records/0`, {
      headers: { ...TOKEN, ...(body !== undefined && { "content-type": "application/json" }) },
      ...(body !== undefined && { body }),
    });
  expect((await end()).status).toBe(404);
  await begin();
  expect([(await end()).status, (await end()).status]).toEqual([200, 200]);
  const { body } = await ana.call("getSession", { params: { uid } });
  expect(body.recorded).toBe(false);
  // The body has no `message`, so the service reads it as incomplete output, and not as a request that ends the
  // recording.
  const half = await end(JSON.stringify({ uid, seat: 0 }));
  expect([half.status, half.body.message]).toEqual([422, expect.stringMatching(/^message is required/)]);
});

describe("a WebSocket of events", () => {
  test("is refused by HTTP: without the token, for an invalid id, and for other requests", async () => {
    expect(await refusal(internal.url, {})).toBe(403);
    expect(await refusal(internal.url, { "X-Internal-Token": `${INTERNAL_TOKEN}1` })).toBe(403);
    expect(await refusal(internal.url, { authorization: `Bearer ${ana.token}` })).toBe(403);
    expect(await refusal(internal.url, {}, "/internal/nowhere")).toBe(403);
    expect(await refusal(internal.url, TOKEN, "/internal/sessions/nope/events")).toBe(404);
    expect(await refusal(internal.url, TOKEN, "/internal/nowhere")).toBe(404);
    expect(await refusal(internal.url, TOKEN, "/internal/lookup")).toBe(400);
    expect(await refusal(app.url, TOKEN)).toBe(404);
    expectError(
      await internal.call("streamSessionEvents", { params: { uid } }),
      400,
      "the request is not for a WebSocket: send the header Upgrade: websocket",
    );
  });

  test("ends the connection, and not the service, if it is requested during another request of the connection", async () => {
    const head = `Host: test\r\nX-Internal-Token: ${INTERNAL_TOKEN}\r\n`;
    const key = "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n";
    const { socket, closed } = openConnection(internal.url);
    socket.write(
      `POST /internal/sessions/${uid}/finish HTTP/1.1\r\n${head}Content-Length: 0\r\n\r\n` +
        `GET /internal/sessions/${uid}/events HTTP/1.1\r\n${head}Connection: Upgrade\r\nUpgrade: websocket\r\n${key}\r\n`,
    );
    await closed;
    await begin();
  });

  test("ignores upgrades to other protocols", async () => {
    await begin();
    const { port } = new URL(internal.url);
    const body = JSON.stringify({ authenticated: true });
    const headers = {
      ...TOKEN,
      "content-type": "application/json",
      "content-length": body.length,
      connection: "Upgrade, HTTP2-Settings",
      upgrade: "h2c",
    };
    const status = await new Promise((resolve, reject) => {
      request(
        { port, method: "PATCH", path: `/internal/sessions/${uid}`, headers, agent: false },
        (response) => {
          response.resume().on("end", () => resolve(response.statusCode));
        },
      )
        .on("error", reject)
        .end(body);
    });
    expect(status).toBe(200);
    const session = await ana.call("getSession", { params: { uid } });
    expect(session.body.authenticated).toBe(true);
  });

  test.each([
    ["other than JSON", "secret-word", 1007, "messages must be JSON"],
    ["other than an object", "[]", 1007, "message must match the schema of an event"],
    ["a field too few", '{"type":"shell"}', 1007, "timestamp must match the schema of an event"],
    ["nested data", event("env", { secret: { word: 1 } }), 1007, "data must match the schema of an event"],
    ["invalid output", event("pty-output", "secret-word"), 1007, expect.stringContaining("output")],
    ["other than text", Buffer.from(event("shell", null)), 1003, "messages must be text"],
    ["too long", event("env", "A".repeat(220_000)), 1009, ""],
    ["a type that databases reject", event("a\0", null), 1007, expect.stringContaining("type must")],
    ["of a missing session", event("shell", null), 1008, "no such session"],
  ])(
    "closes after a message that is invalid (%s), and logs no content",
    async (what, message, code, reason) => {
      if (code !== 1008) await begin();
      const lines: string[] = [];
      const log = new Writable({
        write: (chunk, _, done) => {
          lines.push(String(chunk));
          done();
        },
      });
      const logged = await startInternalApp(app, { logger: { level: "info", stream: log } });
      const socket = await opened(logged.url);
      socket.send(message);
      socket.send(event("shell", null));
      expect(await closing(socket), what).toEqual([code, reason]);
      await expect.poll(() => lines.join("")).toContain("WebSocket closed");
      expect(lines.join("")).toMatch(/WebSocket message rejected|WebSocket protocol error/);
      expect(lines.join("")).not.toMatch(/secret|AAAA/);
      if (code !== 1008) expect(await types()).toEqual([]);
      await logged.stop();
    },
  );

  test("continues when a session has its maximum of events, and records output", async () => {
    await begin();
    await app.services.db.session.update({ where: { uid }, data: { boundedEvents: 999 } });
    const socket = await opened();
    for (const type of ["env", "signal", "signal", "exec"]) socket.send(event(type, null));
    socket.send(event("pty-output", { output: "still recorded" }));
    await expect.poll(() => app.services.db.sessionRecord.count()).toBe(1);
    expect(await types()).toEqual(["env", "events-capped", "exec"]);
    expect(socket.readyState).toBe(WebSocket.OPEN);
  });

  test("stores events but no output if recording is off", async () => {
    await begin();
    const off = { session_record: false };
    await ana.call("setSessionRecord", { body: off });
    const socket = await opened();
    socket.send(event("pty-output", { output: "private" }));
    socket.send(event("shell", null));
    await expect.poll(types).toEqual(["shell"]);
    expect(await app.services.db.sessionRecord.count()).toBe(0);
  });

  test("is read no faster than its events are stored, one at a time", { tags: ["long"] }, async () => {
    await begin();
    const { promise, resolve: open } = Promise.withResolvers<void>();
    let pending = 0;
    let most = 0;
    let begun = 0;
    const transaction = async (...given: unknown[]) => {
      begun += 1;
      pending += 1;
      most = Math.max(most, pending);
      await promise;
      const { db } = app.services;
      return Reflect.apply(db.$transaction, db, given).finally(() => {
        pending -= 1;
      });
    };
    const db = replacing(app.services.db, { $transaction: transaction });
    const slow = await startInternalApp({ ...app, services: { ...app.services, db } });
    const socket = await opened(slow.url);
    const many = 200;
    for (let n = 0; n < many; n += 1) socket.send(event("env", "A".repeat(150_000)));
    await expect.poll(() => begun).toBe(1);
    // The service still serves other clients. It has stopped reading from this connection, so most messages remain in
    // the sender's buffer.
    for (let n = 0; n < 20; n += 1) expect((await slow.send("GET", "/internal/nowhere")).status).toBe(404);
    expect(socket.bufferedAmount).toBeGreaterThan(5_000_000);
    expect(begun).toBe(1);
    open();
    await expect.poll(() => app.services.db.sessionEvent.count(), { timeout: 60_000 }).toBe(many);
    expect([most, begun]).toEqual([1, many]);
    await slow.stop();
  });

  test("ends with the service, which does not wait for the client", async () => {
    const other = await startInternalApp(app);
    const socket = await opened(other.url);
    // The client stops reading from the connection, so it does not respond when the service closes the connection.
    socket.pause();
    await other.stop();
    socket.resume();
    expect((await closing(socket))[0]).toBe(1001);
  });

  test("ends after its session if no message came for a while, and not before", async () => {
    const quick = await startInternalApp(app, { webSockets: { silence: 30 } });
    const early = await opened(quick.url);
    early.send(event("shell", null));
    expect((await closing(early))[0]).toBe(1008);
    const waiting = await opened(quick.url);
    await begin();
    waiting.send(event("shell", null));
    await expect.poll(types).toEqual(["shell"]);
    await internal.call("finishSession", { params: { uid } });
    expect(await closing(waiting)).toEqual([1000, "no more messages can arrive"]);
    await quick.stop();
  });

  test("is refused above the limit; an unused WebSocket is closed in favor of a new WebSocket", async () => {
    await begin();
    const small = await startInternalApp(app, { webSockets: { most: 2 } });
    const [used, silent] = [await opened(small.url), await opened(small.url)];
    used.send(event("shell", null));
    await expect.poll(types).toEqual(["shell"]);
    const closed = closing(silent);
    const third = await opened(small.url);
    expect((await closed)[0]).toBe(1013);
    third.send(event("env", null));
    await expect.poll(types).toEqual(["shell", "env"]);
    expect(await refusal(small.url)).toBe(503);
    await small.stop();
  });
});
