import { once } from "node:events";
import { Agent, request } from "node:http";
import { type AddressInfo, connect, createServer } from "node:net";
import { text } from "node:stream/consumers";
import { setImmediate as nextCheck, setTimeout as wait } from "node:timers/promises";
import Fastify from "fastify";
import { expect, onTestFinished, test } from "vitest";
import { makeMetrics } from "../../../server/metrics.ts";
import { buildMetricsServer } from "../../../server/process/metricsServer.ts";

/** Time in milliseconds for which the tests block the event loop: much longer than a pause of a busy machine. */
const BLOCK = 1000;

function block(milliseconds: number): void {
  const end = performance.now() + milliseconds;
  while (performance.now() < end);
}

/** Starts a metrics server. The returned functions send a request on an open connection, and return its result. */
async function scraper() {
  const server = buildMetricsServer(makeMetrics(), { logger: Fastify().log, token: undefined });
  await server.listen({ host: "127.0.0.1", port: 0 });
  const { port } = server.server.address() as AddressInfo;
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(async () => {
    agent.destroy();
    await server.close();
  });
  const send = async (): Promise<number> => {
    const sent = request({ host: "127.0.0.1", port, path: "/metrics", agent });
    sent.end();
    const [response] = await once(sent, "response");
    const [, seconds] = /^nodejs_eventloop_lag_max_seconds (\S+)$/m.exec(await text(response)) ?? [];
    return Number(seconds) * 1000;
  };
  return send;
}

/** Opens a connection to a server that blocks the event loop when it receives data. */
async function blocker() {
  const server = createServer((socket) => socket.once("data", () => block(BLOCK)));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const accepted = once(server, "connection");
  const client = connect(port, "127.0.0.1");
  onTestFinished(() => {
    client.destroy();
    server.close();
  });
  await accepted;
  return client;
}

test("a request that arrives during a block of the event loop reports the block, and resets the maximum", async () => {
  const scrape = await scraper();
  const client = await blocker();
  await scrape();
  // After a reset, the first interval of the metric's timer must pass before a block is measured.
  await wait(50);
  await nextCheck();
  // The service receives both in the same turn of the event loop, first the data that block it.
  client.write("block");
  const scraped = scrape();
  block(50);
  const blocked = await scraped;
  expect(blocked).toBeGreaterThanOrEqual(BLOCK);
  expect(await scrape()).toBeLessThan(blocked);
});
