import { EventEmitter } from "node:events";
import { expect, it } from "vitest";
import type { WebSocket } from "ws";
import { AgentTunnel } from "../../server/gateway/agentTunnels/AgentTunnel.ts";
import { Dials, Transport1 } from "../../server/gateway/agentTunnels/Transport1.ts";
import { Transport2 } from "../../server/gateway/agentTunnels/Transport2.ts";
import { PING, SYN, yamuxFrame } from "../support/YamuxPeer.ts";

/** A simulated WebSocket that uses no network. */
class FakeSocket extends EventEmitter {
  readonly OPEN = 1;
  readyState = 1;
  paused = false;
  terminated = false;
  send(): void {}
  ping(): void {}
  close(): void {
    this.readyState = 3;
  }
  pause(): void {
    this.paused = true;
  }
  terminate(): void {
    this.terminated = true;
  }
}

function tunnelOf(pending: boolean, version: 1 | 2 = 1) {
  const socket = new FakeSocket();
  const device = { uid: "uid", tenantId: "tenant", network: "198.51.100.1" };
  const violations: string[] = [];
  const violated = (_tunnel: AgentTunnel, violation: string) => void violations.push(violation);
  const events = { alive: () => {}, violated, closed: () => {} };
  const tunnel = new AgentTunnel(
    socket as unknown as WebSocket,
    device,
    { pending, proven: false, openedAt: new Date() },
    (link) => (version === 1 ? new Transport1(link, new Dials("instance")) : new Transport2(link)),
    events,
  );
  const send = (message: string | Buffer) => socket.emit("message", Buffer.from(message as Buffer), true);
  return { tunnel, socket, send, violations };
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
  socket.emit("pong", Buffer.alloc(0));
  tunnel.check();
  for (let count = 0; count < 4000; count += 1) send(failed);
  expect([socket.paused, socket.terminated]).toEqual([false, false]);
  for (let count = 0; count < 4000; count += 1) send(failed);
  expect(socket.paused).toBe(true);
});

it("stops reading from a device that floods its tunnel with pings of yamux, and ends the tunnel at the next check", () => {
  const { tunnel, socket, send } = tunnelOf(false, 2);
  const pings = Buffer.concat(Array.from({ length: 1000 }, () => yamuxFrame({ type: PING, flags: SYN })));
  for (let count = 0; count < 4; count += 1) send(pings);
  expect(socket.paused).toBe(false);
  for (let count = 0; count < 4; count += 1) send(pings);
  expect([socket.paused, socket.terminated]).toEqual([true, false]);
  tunnel.check();
  expect(socket.terminated).toBe(true);
});

it("ends a tunnel after a violation of its protocol, and reports the violation once", () => {
  const { socket, send, violations } = tunnelOf(false, 2);
  send("garbage that is no frame");
  send("more garbage");
  expect(violations).toEqual(["an unknown version of yamux"]);
  expect(socket.terminated).toBe(true);
});

it.each([1, 2] as const)("ends a tunnel with transport %d after a text message", (version) => {
  const { socket, violations } = tunnelOf(false, version);
  socket.emit("message", Buffer.from("{}"), false);
  expect(violations).toEqual(["a text message"]);
  expect(socket.terminated).toBe(true);
});
