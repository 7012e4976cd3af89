import { once } from "node:events";
import type { Socket } from "node:net";
import type { FastifyInstance } from "fastify";
import { afterEach, beforeEach, expect, test } from "vitest";
import { buildApp } from "../../../server/app.ts";
import { withSharedApp } from "./appOfTest.ts";
import { openConnection } from "./rawConnection.ts";

const services = withSharedApp();
let app: FastifyInstance;
let url: string;
/**
 * URLs of all requests that have begun. `inFlight` is the number of requests in progress, and `mostInFlight` is its
 * maximum.
 */
const begun: string[] = [];
let inFlight = 0;
let mostInFlight = 0;
/** The server's sockets of the connections. */
const accepted: Socket[] = [];

beforeEach(async () => {
  begun.length = 0;
  accepted.length = 0;
  inFlight = 0;
  mostInFlight = 0;
  app = await buildApp(services.services, services.gateway);
  app.addHook("onRequest", async ({ url }) => {
    begun.push(url);
    inFlight += 1;
    mostInFlight = Math.max(mostInFlight, inFlight);
  });
  app.addHook("onResponse", async () => {
    inFlight -= 1;
  });
  app.addHook("onRequestAbort", async (_request) => {
    inFlight -= 1;
  });
  app.server.on("connection", (socket: Socket) => accepted.push(socket));
  url = await app.listen({ host: "127.0.0.1", port: 0 });
});
afterEach(async () => {
  for (const socket of accepted) socket.destroy();
  await app.close();
});

const requestsOf = (paths: readonly string[]) =>
  paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: test\r\n\r\n`).join("");
const numbered = (count: number) =>
  Array.from({ length: count }, (_, index) => `/info?agent_version=${index}`);

/** Returns the size of the responses that wait in the server's socket of a connection. */
const held = () => Math.max(...accepted.map(({ writableLength }) => writableLength));

/** Opens a connection whose client does not read. */
async function openUnread(): Promise<Socket> {
  const { socket } = openConnection(url);
  socket.pause();
  await once(socket, "connect");
  return socket;
}

test("answers requests on one connection one by one, in order", async () => {
  const { socket, statuses } = openConnection(url);
  const paths = numbered(33);
  socket.write(requestsOf(paths));
  await expect.poll(statuses).toEqual(paths.map(() => "200"));
  expect(begun).toEqual(paths);
  expect(mostInFlight).toBe(1);
  // The service keeps the connection open.
  socket.write(requestsOf(["/info?agent_version=last"]));
  await expect.poll(() => begun.at(-1)).toBe("/info?agent_version=last");
});

test("closes a connection with too many waiting requests, and does not begin these requests", async () => {
  let read = 0;
  app.server.on("request", () => {
    read += 1;
  });
  const { socket, closed } = openConnection(url);
  socket.write(requestsOf(numbered(1800)));
  await closed;
  // The service still answers requests on other connections.
  expect((await fetch(`${url}/healthcheck`)).status).toBe(200);
  expect(begun.filter((url) => url.startsWith("/info")).length).toBeLessThan(40);
  expect(mostInFlight).toBeLessThanOrEqual(2);
  // The service does not parse the later requests on the connection.
  expect(read).toBeLessThan(40);
});

test("creates only one waiting response for a client that does not read", async () => {
  const document = await (await fetch(`${url}/openapi.json`)).text();
  const socket = await openUnread();
  socket.write(requestsOf(Array(33).fill("/openapi.json")));
  // When bytes of a response wait in the server's socket, the operating system's buffers at both ends of the connection
  // are full.
  await expect.poll(held).toBeGreaterThan(0);
  for (let turn = 0; turn < 5; turn += 1) {
    expect((await fetch(`${url}/healthcheck`)).status).toBe(200);
    expect(held()).toBeLessThan(1.1 * Buffer.byteLength(document));
  }
  expect(begun.length).toBeLessThan(33);
});

test("does not begin the waiting requests of a closed connection", async () => {
  const socket = await openUnread();
  socket.write(requestsOf([...Array(28).fill("/openapi.json"), ...numbered(5)]));
  await expect.poll(held).toBeGreaterThan(0);
  const before = begun.length;
  socket.destroy();
  await expect.poll(() => accepted.every(({ closed }) => closed)).toBe(true);
  expect((await fetch(`${url}/healthcheck`)).status).toBe(200);
  expect(begun.filter((url) => url.startsWith("/info"))).toEqual([]);
  expect(begun.length).toBe(before + 1);
});
