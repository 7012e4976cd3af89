import { expect, onTestFinished, test } from "vitest";
import { buildApp } from "../../../server/app.ts";
import { HttpServers } from "../../../server/http/listener/HttpServers.ts";
import { buildInternalApp } from "../../../server/process/internalApp.ts";
import { withSharedApp } from "./appOfTest.ts";
import { openConnection } from "./rawConnection.ts";

const app = withSharedApp();

/** Sends raw bytes to the service. Returns everything that the service sends until the connection ends. */
function answerTo(text: string, url = app.url): Promise<string> {
  const { socket, closed } = openConnection(url);
  socket.write(text);
  return closed;
}

test("rejects headers of more than 64 KiB", async () => {
  const filler = "a".repeat(64 * 1024);
  expect(await answerTo(`GET /info HTTP/1.1\r\nHost: test\r\nX-Filler: ${filler}\r\n\r\n`)).toMatch(
    /^HTTP\/1\.1 431 /,
  );
});

test("sets timeouts and a maximum number of headers", async () => {
  const built = await buildApp(app.services, app.gateway);
  const { headersTimeout, requestTimeout, keepAliveTimeout, timeout, maxHeadersCount } = built.server;
  await built.close();
  expect({ headersTimeout, requestTimeout, keepAliveTimeout, timeout, maxHeadersCount }).toEqual({
    headersTimeout: 15_000,
    requestTimeout: 30_000,
    keepAliveTimeout: 72_000,
    timeout: 120_000,
    maxHeadersCount: 200,
  });
});

test("rejects two hosts and a missing host, for every path, on every listener", async () => {
  const internal = await buildInternalApp(app.services, app.gateway, {
    token: "a token of the internal listener",
  });
  onTestFinished(() => internal.close());
  for (const url of [app.url, await internal.listen({ host: "127.0.0.1", port: 0 })]) {
    for (const path of ["/info", "/nowhere"]) {
      const head = `GET ${path} HTTP/1.1\r\nHost: gate.example.org\r\n`;
      for (const second of ["Host: evil.example", "hOST: gate.example.org", "X-Other: 1\r\nHost:"]) {
        const answer = await answerTo(`${head}${second}\r\nConnection: close\r\n\r\n`, url);
        expect(answer).toMatch(/^HTTP\/1\.1 400 /);
        expect(answer).toMatch(/^x-request-id: [0-9a-f-]{36}\r$/m);
        expect(answer).toContain('{"message":"Host must occur once"}');
      }
      expect(await answerTo(`${head}Connection: close\r\n\r\n`, url)).not.toMatch(/^HTTP\/1\.1 400 /);
    }
    expect(await answerTo("GET /info HTTP/1.1\r\nConnection: close\r\n\r\n", url)).toMatch(
      /^HTTP\/1\.1 400 /,
    );
  }
});

test("rejects two lengths of one body, and a length with chunks", async () => {
  const head = "POST /api/login HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n";
  for (const lengths of [
    "Content-Length: 2\r\nContent-Length: 5",
    "Content-Length: 2\r\nTransfer-Encoding: chunked",
  ]) {
    expect(await answerTo(`${head}${lengths}\r\n\r\n{}`)).toMatch(/^HTTP\/1\.1 400 /);
  }
});

/** Starts an app. Returns the app, its servers, and an idle connection that has been used before. */
async function withIdleConnection() {
  const servers = new HttpServers();
  const built = await buildApp(app.services, app.gateway, { servers });
  onTestFinished(() => built.close());
  const url = await built.listen({ host: "127.0.0.1", port: 0 });
  const { socket, received, closed } = openConnection(url);
  socket.write(INFO);
  await expect.poll(received).toMatch(/^HTTP\/1\.1 200 .*"version"/s);
  const { length } = received();
  return { built, servers, url, socket, rest: closed.then((text) => text.slice(length)) };
}

const INFO = "GET /info HTTP/1.1\r\nHost: test\r\n\r\n";
/** The last response of a connection. */
const LAST = /^HTTP\/1\.1 200 .*\r\nconnection: close\r\n.*"version"/is;

test("answers a request that arrives immediately before the service closes its connections", async () => {
  const { built, socket, rest } = await withIdleConnection();
  // The client's system delivers the request at once, but the service has not read it when it begins to close.
  socket.write(INFO);
  await built.close();
  expect(await rest).toMatch(LAST);
});

test("answers requests on connections that the service has not accepted when it begins to close", async () => {
  const { built, url } = await withIdleConnection();
  // The clients' system opens all connections and sends their requests at once. The service accepts one connection in
  // each turn of the event loop.
  const clients = Array.from({ length: 100 }, () => openConnection(url));
  await Promise.all(clients.map(({ socket }) => new Promise((sent) => socket.write(INFO, sent))));
  await built.close();
  for (const { closed } of clients) expect(await closed).toMatch(LAST);
});

test("closes an idle connection when the service closes", async () => {
  const { built, rest } = await withIdleConnection();
  await built.close();
  expect(await rest).toBe("");
});

test("ends each connection after its next response, and accepts new connections, before the service closes", async () => {
  const { servers, url, socket, rest } = await withIdleConnection();
  servers.endAfterResponses();
  socket.write(INFO);
  expect(await rest).toMatch(LAST);
  expect(await answerTo(INFO, url)).toMatch(LAST);
});
