import { EventEmitter } from "node:events";
import { expect, it } from "vitest";
import type { WebSocket } from "ws";
import { AgentTunnel } from "../../server/gateway/agentTunnels/AgentTunnel.ts";

/** A simulated WebSocket that uses no network. */
class FakeSocket extends EventEmitter {
  paused = false;
  terminated = false;
  send(): void {}
  ping(): void {}
  close(): void {}
  pause(): void {
    this.paused = true;
  }
  terminate(): void {
    this.terminated = true;
  }
}

function tunnelOf(pending: boolean) {
  const socket = new FakeSocket();
  const device = { uid: "uid", tenantId: "tenant", network: "198.51.100.1" };
  const events = { alive: () => {}, failed: () => {}, closed: () => {} };
  const tunnel = new AgentTunnel(
    socket as unknown as WebSocket,
    device,
    { pending, proven: false, openedAt: new Date() },
    events,
  );
  const send = (text: string) => socket.emit("message", Buffer.from(text), true);
  return { tunnel, socket, send };
}

const LINE = '{"command":"keep-alive"}\n';

it("stops reading from a pending device that floods its tunnel with lines, and ends the tunnel at the next check", () => {
  const { tunnel, socket, send } = tunnelOf(true);
  for (let count = 0; count < 40; count += 1) send(LINE);
  expect(socket.paused).toBe(false);
  for (let count = 0; count < 40; count += 1) send(LINE);
  expect(socket.paused).toBe(true);
  expect(socket.terminated).toBe(false);
  tunnel.check();
  expect(socket.terminated).toBe(true);
});

it("stops reading from a pending device that sends too much in one message", () => {
  const { socket, send } = tunnelOf(true);
  send(LINE.repeat(1000));
  expect(socket.paused).toBe(true);
});

it("accepts many reports of failed connections from an accepted device", () => {
  const { tunnel, socket, send } = tunnelOf(false);
  const failed = `${JSON.stringify({ command: "pickup-failed", connPath: "/ssh/revdial?uuid=1" })}\n`;
  for (let count = 0; count < 4000; count += 1) send(failed);
  socket.emit("pong");
  tunnel.check();
  for (let count = 0; count < 4000; count += 1) send(failed);
  expect([socket.paused, socket.terminated]).toEqual([false, false]);
  for (let count = 0; count < 4000; count += 1) send(failed);
  expect(socket.paused).toBe(true);
});
