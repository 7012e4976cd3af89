import { once } from "node:events";
import { request } from "node:http";
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import { type ClientOptions, WebSocket } from "ws";
import { acceptSsh, YamuxPeer } from "../../support/YamuxPeer.ts";
import { withSharedApp } from "../http/appOfTest.ts";
import { encodeFilter, enroll, enrollProven, property, type TestUser } from "../http/testApp.ts";

const app = withSharedApp();
let ana: TestUser;
let next = 0;
beforeAll(async () => {
  ana = await app.user("ana", "lab");
});

interface Enrolled {
  readonly uid: string;
  readonly token: string;
}

/**
 * Enrolls a device with a unique MAC address.
 * @param proven true if the device proves its private key
 */
async function newDevice({ accepted = true, proven = false } = {}): Promise<Enrolled> {
  next += 1;
  const mac = `00:00:00:00:${(next >> 8).toString(16).padStart(2, "0")}:${(next & 255).toString(16).padStart(2, "0")}`;
  const device = await (proven ? enrollProven : enroll)(app, ana.tenant, mac);
  if (accepted) await ana.call("acceptDevice", { params: { uid: device.uid } });
  return device;
}

function webSocket(path: string, token: string, address = "127.0.0.1"): WebSocket {
  return openWebSocket(path, { headers: { Authorization: `Bearer ${token}` }, localAddress: address });
}

function openWebSocket(path: string, options: ClientOptions = {}): WebSocket {
  const socket = new WebSocket(app.url.replace("http", "ws") + path, options);
  // The test may end and close the socket before the socket is open.
  socket.on("error", () => {});
  open.push(socket);
  return socket;
}

/** Opens an agent's tunnel with transport 2. The agent's SSH server returns all data unchanged after its own data. */
async function openTunnel2(token: string) {
  const socket = webSocket("/agent/connection", token);
  const sessions: string[] = [];
  const peer = new YamuxPeer(
    (bytes) => socket.send(bytes),
    async (stream) => {
      sessions.push(await acceptSsh(stream));
      stream.write("SSH-2.0-test\r\n");
      stream.pipe(stream);
    },
  );
  socket.on("message", (data) => peer.receive(data as Buffer));
  await once(socket, "open");
  return { socket, peer, sessions, closed: once(socket, "close") };
}

/** An agent's tunnel with transport 1. `lines` contains the messages that the agent has received. */
class FakeTunnel {
  readonly socket: WebSocket;
  readonly lines: { readonly command: string; readonly connPath?: string }[] = [];
  readonly closed: Promise<unknown>;

  constructor(token: string, address = "127.0.0.1") {
    this.socket = webSocket("/ssh/connection", token, address);
    this.socket.on("message", (data) => {
      for (const line of String(data).trimEnd().split("\n")) this.lines.push(JSON.parse(line));
    });
    this.closed = new Promise((resolve) => this.socket.on("close", resolve));
  }

  async opened(): Promise<this> {
    await once(this.socket, "open");
    return this;
  }

  /** Waits until the service announces a connection. Returns the path at which the agent can pick up the connection. */
  async announced(): Promise<string> {
    const path = await vi.waitFor(() => {
      const line = this.lines.findLast(({ command }) => command === "conn-ready");
      expect(line).toBeDefined();
      return line?.connPath;
    });
    return path ?? "";
  }

  send(line: string): void {
    this.socket.send(Buffer.from(line));
  }

  /** Reports that the agent cannot pick up the connection at the path. */
  fail(path: string): void {
    this.send(`${JSON.stringify({ command: "pickup-failed", connPath: path, err: "no" })}\n`);
  }
}

const SESSION = "5e".repeat(32);
const open: WebSocket[] = [];
afterEach(() => {
  for (const socket of open.splice(0)) socket.terminate();
});

/** Opens the WebSocket with which an agent picks up a connection. */
const pickUp = (path: string): WebSocket => openWebSocket(path);

/** Enrolls an accepted device whose agent has a tunnel with transport 1. */
async function connectedDevice(options: { readonly proven?: boolean } = {}) {
  const device = await newDevice(options);
  return { device, tunnel: await new FakeTunnel(device.token).opened() };
}

/** Opens a connection to the SSH server of a device, which fails. Returns the error's message. */
const failedReach = ({ uid }: Enrolled) =>
  app.gateway.reach(uid, SESSION).then(
    () => "the device was reached",
    (error: Error) => error.message,
  );

const stateOf = async ({ uid }: Enrolled) =>
  (await ana.call("getDevice", { params: { uid } })).body as {
    readonly online: boolean;
    readonly transport: number | null;
  };

const untilOnline = (device: Enrolled, expected: boolean) =>
  expect.poll(async () => (await stateOf(device)).online).toBe(expected);

/** Sends a WebSocket request that the service rejects. Returns the status and the message of the response. */
function refused(path: string, authorization?: string): Promise<[number | undefined, string]> {
  const headers = {
    connection: "Upgrade",
    upgrade: "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
    ...(authorization && { authorization: `Bearer ${authorization}` }),
  };
  return new Promise((resolve, reject) => {
    request(app.url + path, { headers, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (more: string) => {
        text += more;
      });
      response.on("end", () => resolve([response.statusCode, JSON.parse(text).message]));
    })
      .on("upgrade", () => reject(new Error("the WebSocket is open")))
      .on("error", reject)
      .end();
  });
}

test.each(["/ssh/connection", "/agent/connection"])(
  "accepts a tunnel only from an agent: %s",
  async (path) => {
    expect((await refused(path))[0]).toBe(401);
    expect((await refused(path, ana.token))[0]).toBe(403);
  },
);

test("a tunnel with transport 2 carries connections in both directions", async () => {
  const device = await newDevice();
  expect((await stateOf(device)).transport).toBeNull();
  const { sessions, socket } = await openTunnel2(device.token);
  await expect.poll(() => stateOf(device)).toMatchObject({ online: true, transport: 2 });
  const streams = await Promise.all([1, 2, 3].map(() => app.gateway.reach(device.uid, SESSION)));
  expect(sessions).toEqual([SESSION, SESSION, SESSION]);
  for (const stream of streams) {
    stream.write("to the device");
    await vi.waitFor(() => expect(stream.readableLength).toBe(27));
    expect(String(stream.read())).toBe("SSH-2.0-test\r\nto the device");
  }
  const closed = Promise.all(streams.map((stream) => once(stream, "close")));
  socket.terminate();
  await closed;
  await expect.poll(() => stateOf(device)).toMatchObject({ online: false, transport: 2 });
});

test("a device shows the transport of its last tunnel, also after a change of the transport", async () => {
  const device = await newDevice({ proven: true });
  const older = await openTunnel2(device.token);
  await expect.poll(() => stateOf(device)).toMatchObject({ online: true, transport: 2 });
  app.pass(10);
  await new FakeTunnel(device.token).opened();
  await older.closed;
  await expect.poll(() => stateOf(device)).toMatchObject({ online: true, transport: 1 });
  const filter = encodeFilter([property("transport", "eq", 1)]);
  const { body } = await ana.call("getDevices", { query: { filter } });
  expect((body as readonly { uid: string }[]).map(({ uid }) => uid)).toContain(device.uid);
});

test("a device is online while it has a tunnel, and offline immediately after the tunnel closes", async () => {
  const device = await newDevice();
  await app.call("offlineDevice", { token: device.token, params: { uid: device.uid } });
  const tunnel = await new FakeTunnel(device.token).opened();
  await untilOnline(device, true);
  expect(tunnel.lines).toContainEqual({ command: "keep-alive" });
  tunnel.socket.terminate();
  await untilOnline(device, false);
});

test("a newer proven tunnel replaces the older tunnel, and the device stays online when the older tunnel ends", async () => {
  const { device, tunnel: older } = await connectedDevice({ proven: true });
  await vi.waitFor(() => expect(older.lines.length).toBeGreaterThan(0));
  app.pass(10);
  const newer = await new FakeTunnel(device.token).opened();
  await older.closed;
  const failure = failedReach(device);
  newer.fail(await newer.announced());
  expect(await failure).toBe("could not pick up the connection");
  expect((await stateOf(device)).online).toBe(true);
});

test("two agents of one device do not replace each other's tunnel continuously", async () => {
  const { device, tunnel: first } = await connectedDevice({ proven: true });
  await vi.waitFor(() => expect(first.lines.length).toBeGreaterThan(0));
  expect(await refused("/ssh/connection", device.token)).toEqual([
    429,
    "the device opened another tunnel a few seconds ago",
  ]);
  expect(first.socket.readyState).toBe(WebSocket.OPEN);
  // After an agent has lost its tunnel, it can open another tunnel immediately.
  first.socket.terminate();
  await untilOnline(device, false);
  await new FakeTunnel(device.token).opened();
});

test("an unproven tunnel replaces no other tunnel, and only one unproven tunnel per network waits", async () => {
  const { device, tunnel: older } = await connectedDevice();
  await untilOnline(device, true);
  const newer = await new FakeTunnel(device.token).opened();
  const path = await newer.announced();
  expect((await refused("/ssh/connection", device.token))[0]).toBe(429);
  // From another network, the service accepts one more unproven tunnel.
  const third = await new FakeTunnel(device.token, "127.0.0.9").opened();
  newer.fail(path);
  await newer.closed;
  third.fail(await third.announced());
  await third.closed;
  expect(older.socket.readyState).toBe(WebSocket.OPEN);
  expect((await stateOf(device)).online).toBe(true);
  expect((await app.services.metrics.refusedTakeovers.get()).values).toMatchObject([{ value: 2 }]);
  await expect
    .poll(async () => (await ana.call("getAuditTrail", { query: { object: device.uid } })).body)
    .toMatchObject([
      {
        object: { id: device.uid },
        after: { takeover: "refused", reason: "the agent could not pick up the connection" },
      },
      expect.anything(),
      expect.anything(),
    ]);
});

test.each([
  ["a text frame", (socket: WebSocket) => socket.send('{"command":"keep-alive"}\n')],
  ["a frame that is not JSON", (socket: WebSocket) => socket.send(Buffer.from("hello\n"))],
  ["a message without an end", (socket: WebSocket) => socket.send(Buffer.alloc(5000, 0x20))],
])("%s ends the tunnel", async (_what, send) => {
  const { tunnel } = await connectedDevice();
  send(tunnel.socket);
  await tunnel.closed;
});

test("accepts lines in fragments, and ignores unknown commands", async () => {
  const { device, tunnel } = await connectedDevice();
  const failure = failedReach(device);
  const failed = JSON.stringify({ command: "pickup-failed", connPath: await tunnel.announced(), err: "" });
  tunnel.send('{"command":"later"}\n');
  tunnel.send(failed.slice(0, 20));
  tunnel.send(`${failed.slice(20)}\n{"command":"keep-alive"}\n`);
  expect(await failure).toBe("could not pick up the connection");
});

test("an announced connection can be picked up once, and carries bytes in both directions", async () => {
  const { device, tunnel } = await connectedDevice();
  const reached = app.gateway.reach(device.uid, SESSION);
  const path = await tunnel.announced();
  expect(path).toMatch(/^\/ssh\/revdial\?revdial\.dialer=[0-9a-f]{32}&uuid=[0-9a-f]{32}$/);
  const picked = pickUp(path);
  const head = once(picked, "message");
  const stream = await reached;
  expect(String((await head)[0])).toBe(`GET /ssh/${SESSION} HTTP/1.1\r\nHost: gateway\r\n\r\n`);
  picked.send(Buffer.from("from the device"));
  expect(String((await once(stream, "data"))[0])).toBe("from the device");
  stream.write("to the device");
  expect(String((await once(picked, "message"))[0])).toBe("to the device");
  expect((await refused(path))[0]).toBe(400);
  stream.destroy();
});

test("a request that is not for a WebSocket does not use up an announced connection", async () => {
  const { device, tunnel } = await connectedDevice();
  const reached = app.gateway.reach(device.uid, SESSION);
  const path = await tunnel.announced();
  expect((await app.send("GET", path)).status).toBe(400);
  const picked = pickUp(path);
  await once(picked, "open");
  (await reached).destroy();
});

test("rejects the pickup of a connection that was never announced", async () => {
  expect((await refused("/ssh/revdial"))[0]).toBe(400);
  expect((await refused("/ssh/revdial?revdial.dialer=0f&uuid=0"))[0]).toBe(400);
  const { instanceId } = app.gateway;
  expect((await refused(`/ssh/revdial?revdial.dialer=${instanceId}&uuid=${"0".repeat(32)}`))[0]).toBe(400);
});

test("a device cannot end a connection to another device", async () => {
  const { device, tunnel } = await connectedDevice();
  const { tunnel: otherTunnel } = await connectedDevice();
  const reached = app.gateway.reach(device.uid, SESSION);
  const path = await tunnel.announced();
  otherTunnel.fail(path);
  pickUp(path);
  (await reached).destroy();
});

test("a device without a tunnel cannot be reached, nor a device whose tunnel closes", async () => {
  const device = await newDevice();
  await expect(app.gateway.reach(device.uid, SESSION)).rejects.toThrow("is not connected");
  const tunnel = await new FakeTunnel(device.token).opened();
  const failure = failedReach(device);
  await tunnel.announced();
  tunnel.socket.terminate();
  expect(await failure).toBe("hung up");
});

test("pending devices hold tunnels, up to a limit per address", { tags: ["long"] }, async () => {
  const devices = await Promise.all(Array.from({ length: 51 }, () => newDevice({ accepted: false })));
  const last = devices.pop() as Enrolled;
  await Promise.all(devices.map(({ token }) => new FakeTunnel(token, "127.0.0.7").opened()));
  const one = new FakeTunnel(last.token, "127.0.0.7");
  await one.closed;
  await new FakeTunnel(last.token, "127.0.0.8").opened();
});

test("an unproven tunnel with transport 2 replaces no other tunnel without a proof", async () => {
  const device = await newDevice();
  const older = await openTunnel2(device.token);
  await untilOnline(device, true);
  // The SSH server of this agent returns what it receives, so it cannot prove a private key.
  const newer = await openTunnel2(device.token);
  await newer.closed;
  expect(newer.sessions).toHaveLength(1);
  expect(older.socket.readyState).toBe(WebSocket.OPEN);
  expect((await stateOf(device)).online).toBe(true);
});

test("ends the tunnel of a deleted device at its next check", {
  tags: ["long"],
  timeout: 60_000,
}, async () => {
  const { device, tunnel } = await connectedDevice();
  await untilOnline(device, true);
  await ana.call("deleteDevice", { params: { uid: device.uid } });
  expect((await refused("/ssh/connection", device.token))[0]).toBe(401);
  await tunnel.closed;
});
