import { EventEmitter } from "node:events";
import { describe, expect, test, vi } from "vitest";
import type { WebSocket } from "ws";
import { AgentTunnel } from "../../../server/gateway/agentTunnels/AgentTunnel.ts";
import { boundFrames } from "../../../server/http/listener/webSockets.ts";
import { withSharedApp } from "../http/appOfTest.ts";
import { openConnection, type RawConnection } from "../http/rawConnection.ts";

const app = withSharedApp();

/** A frame of a client, with a mask of zeros. */
const frame = (opcode: number) => Buffer.from([0x80 | opcode, 0x80, 0, 0, 0, 0]);
const FRAMES = { "empty messages": frame(1), pings: frame(9), pongs: frame(10) };

/** Opens a WebSocket whose client answers no closing handshake. */
async function openRaw(path: string): Promise<RawConnection> {
  const connection = openConnection(app.url);
  connection.socket.write(
    `GET ${path} HTTP/1.1\r\nHost: gate\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
  );
  await expect.poll(connection.statuses).toEqual(["101"]);
  return connection;
}

describe("a web terminal with an unknown ticket", () => {
  test.each(Object.entries(FRAMES))("is disconnected after a few %s", async (_, bytes) => {
    const { socket, closed } = await openRaw("/ws/ssh?token=unknown");
    socket.write(Buffer.concat(Array(100).fill(bytes)));
    await closed;
  });

  test("is disconnected a second after the refusal, if the client is silent", async () => {
    const { closed } = await openRaw("/ws/ssh?token=unknown");
    await closed;
  });
});

class FakeSocket extends EventEmitter {
  readonly OPEN = 1;
  readyState = 1;
  bufferedAmount = 0;
  readonly calls: string[] = [];
  send() {}
  ping() {}
  pause() {
    this.calls.push("pause");
  }
  terminate() {
    this.calls.push("terminate");
  }
}

/** Returns a fake WebSocket as one of the library. */
const webSocketOf = (fake: FakeSocket) => fake as unknown as WebSocket;

describe("a tunnel", () => {
  const device = { uid: "d", tenantId: "t", network: "n" };
  const none = { receive: () => {}, keepAlive: () => {}, closed: () => {} };

  test.each([
    ["pongs", true, "pong", 50],
    ["pongs", false, "pong", 5_000],
    ["pings", false, "ping", 5_000],
    ["empty messages", false, "message", 5_000],
  ])("is not read after too many %s (pending: %s), and ends at its next check", (_, pending, event, most) => {
    const socket = new FakeSocket();
    const alive = vi.fn();
    const tunnel = new AgentTunnel(
      webSocketOf(socket),
      device,
      { pending, proven: true, openedAt: new Date() },
      () => ({ ...none, version: 1, connect: () => Promise.reject(new Error("not used")) }),
      { alive, violated: () => {}, closed: () => {} },
    );
    for (let index = 0; index < most; index += 1) socket.emit(event, Buffer.alloc(0), true);
    expect(socket.calls).toEqual([]);
    socket.emit(event, Buffer.alloc(0), true);
    expect(socket.calls).toEqual(["pause"]);
    tunnel.check();
    expect(socket.calls).toEqual(["pause", "terminate"]);
    // Only the first pong answers the ping of the tunnel.
    expect(alive).toHaveBeenCalledTimes(event === "pong" ? 1 : 0);
  });
});

test("a connection of an agent is disconnected after too many frames without data", async () => {
  const socket = new FakeSocket();
  boundFrames(
    webSocketOf(socket),
    100,
    (frame, data) => frame !== "message" || (data as Buffer).length === 0,
  );
  for (let index = 0; index < 1000; index += 1) socket.emit("message", Buffer.from("data"));
  for (let index = 0; index < 100; index += 1) socket.emit("message", Buffer.alloc(0));
  expect(socket.calls).toEqual([]);
  socket.emit("pong", Buffer.alloc(0));
  expect(socket.calls).toEqual(["terminate"]);
});

test("frames of an earlier interval do not count", async () => {
  let time = 0;
  const socket = new FakeSocket();
  boundFrames(
    webSocketOf(socket),
    100,
    () => true,
    () => time,
  );
  for (let round = 0; round < 5; round += 1) {
    for (let index = 0; index < 100; index += 1) socket.emit("message", Buffer.alloc(0));
    time += 30_000;
  }
  expect(socket.calls).toEqual([]);
});
