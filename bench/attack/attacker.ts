// The attacks on the API. As a worker thread, this file runs one attack, so that the attack does not slow down the
// measuring thread.
import { randomBytes } from "node:crypto";
import { connect } from "node:net";
import { isMainThread, parentPort, workerData } from "node:worker_threads";
import { Pool } from "undici";
import { reportOf, type Username } from "../server/namespaces.ts";

export const HEALTH = "/healthcheck";
export const LIST = "/api/namespaces";

interface Attack {
  readonly title: string;
  readonly connections: number;
  /** Path of the requests that the healthy client sends. */
  readonly healthy: string;
  /** User as whom the attacker logs in. @default the healthy client's user */
  readonly attacker?: Username;
  readonly env?: Readonly<Record<string, string>>;
  /**
   * For a pipelining attack: the path, and the number of requests that each connection sends without waiting for
   * responses. With `unread`, the connection never reads the responses.
   */
  readonly pipelined?: { readonly path: string; readonly requests: number; readonly unread?: true };
  /** Returns the request that each connection sends. After each response, the connection sends the request again. */
  readonly request?: (token: string) => Omit<Parameters<Pool["request"]>[0], "origin">;
}

const get = (path: string) => (token: string) => ({
  method: "GET" as const,
  path,
  headers: { authorization: `Bearer ${token}` },
});

/** A device filter that the service must evaluate for every device. */
const SEARCH = JSON.stringify([
  { type: "property", params: { name: "info.pretty_name", operator: "contains", value: "4242" } },
]);

/** An attack whose requests each enroll a new device. */
const enrollment = {
  connections: 300,
  healthy: LIST,
  request: () => ({
    method: "POST" as const,
    path: "/api/devices/auth",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      ...reportOf("many", 0),
      hostname: randomBytes(8).toString("hex"),
      identity: { mac: randomBytes(6).toString("hex") },
    }),
  }),
};

/** The attacks by their names on the command line. */
export const ATTACKS: Readonly<Record<string, Attack>> = {
  quiet: { title: "no attack", connections: 0, healthy: LIST },
  pipelined: {
    title: "1,800 pipelined `GET /info` on each of 100 connections",
    connections: 100,
    healthy: HEALTH,
    pipelined: { path: "/info", requests: 1800 },
  },
  unread: {
    title: "1,600 `GET /openapi.json` on each of 100 connections, with unread responses",
    connections: 100,
    healthy: HEALTH,
    pipelined: { path: "/openapi.json", requests: 1600, unread: true },
  },
  full: {
    title: "300 connections that enroll devices in a namespace with the maximum number of pending devices",
    ...enrollment,
  },
  enroll: {
    title: "300 connections that enroll devices, from one address",
    ...enrollment,
    env: { GATEHOUSE_MAXIMUM_PENDING_DEVICES: "0" },
  },
  unlimited: {
    title: "300 connections that enroll devices, without a limit for each address",
    ...enrollment,
    env: { GATEHOUSE_MAXIMUM_PENDING_DEVICES: "0", GATEHOUSE_ENROLLMENTS_PER_ADDRESS: "0" },
  },
  stats: {
    title: "20 callers of `GET /api/stats` with 20,000 devices",
    connections: 20,
    healthy: LIST,
    request: get("/api/stats"),
  },
  lists: {
    title: "16 callers of a filtered list of the 100,000 devices of another namespace",
    connections: 16,
    healthy: LIST,
    attacker: "large",
    request: get(`/api/devices?filter=${encodeURIComponent(Buffer.from(SEARCH).toString("base64"))}`),
  },
};

/** The input of an attacker's worker thread. */
export interface Order {
  /** Name of the attack. */
  readonly attack: string;
  readonly url: string;
  /** Token of the attacker. */
  readonly token: string;
}

function execute({ attack, url, token }: Order): void {
  const { connections = 0, pipelined, request } = ATTACKS[attack] ?? {};
  const responses: Record<number, number> = {};
  parentPort?.on("message", () => parentPort?.postMessage(responses));
  const pool = new Pool(url, { connections: connections || 1, bodyTimeout: 0, headersTimeout: 0 });
  const sendOneByOne = async (next: NonNullable<typeof request>) => {
    for (;;) {
      const { statusCode, body } = await pool.request(next(token));
      await body.dump();
      responses[statusCode] = (responses[statusCode] ?? 0) + 1;
    }
  };
  const sendAtOnce = ({ path, requests, unread }: NonNullable<typeof pipelined>) => {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    if (!unread) socket.resume();
    socket.on("error", () => {});
    socket.on("close", () => setTimeout(sendAtOnce, 100, pipelined));
    socket.write(`GET ${path} HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`.repeat(requests));
  };
  for (let index = 0; index < connections; index += 1) {
    if (pipelined) sendAtOnce(pipelined);
    if (request) void sendOneByOne(request);
  }
}

if (!isMainThread) execute(workerData);
