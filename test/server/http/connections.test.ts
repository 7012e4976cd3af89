import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildApp } from "../../../server/dist/app.js";
import { startApp, type TestApp } from "./testApp.ts";

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.stop());

/** What the service answers to raw bytes until it ends the connection. */
async function answerTo(text: string): Promise<string> {
  const socket = connect(Number(new URL(app.url).port), "127.0.0.1");
  let answer = "";
  socket.setEncoding("utf8").on("data", (chunk: string) => {
    answer += chunk;
  });
  socket.on("error", () => {});
  socket.write(text);
  await once(socket, "close");
  return answer;
}

test("headers of more than 64 KiB are refused", async () => {
  const filler = "a".repeat(64 * 1024);
  expect(await answerTo(`GET /info HTTP/1.1\r\nHost: test\r\nX-Filler: ${filler}\r\n\r\n`)).toMatch(
    /^HTTP\/1\.1 431 /,
  );
});

test("a connection has bounds in time", async () => {
  const built = await buildApp(app.services);
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

test("two lengths of one body, and a length with chunks, are refused", async () => {
  const head = "POST /api/login HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n";
  for (const lengths of [
    "Content-Length: 2\r\nContent-Length: 5",
    "Content-Length: 2\r\nTransfer-Encoding: chunked",
  ]) {
    expect(await answerTo(`${head}${lengths}\r\n\r\n{}`)).toMatch(/^HTTP\/1\.1 400 /);
  }
});
