import { once } from "node:events";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { testFolder } from "../../support/folder.ts";
import { KEPT_FILES, startService, type TestService } from "../../support/service.ts";
import { openConnection } from "../http/rawConnection.ts";
import { internalToken, internalUrl, startInternal } from "./internalListener.ts";

const CONTINUE = "HTTP/1.1 100 Continue\r\n\r\n";

/**
 * Sends the head and the first part of a request. `finish` sends the remaining part. The request is in progress: the
 * service has read the head and is waiting for the body.
 */
async function slowRequest(to: string, path: string, content: object, headers: string[] = []) {
  const { socket, received, closed } = openConnection(to);
  const body = JSON.stringify(content);
  const head = [
    `POST ${path} HTTP/1.1`,
    "Host: test",
    "Content-Type: application/json",
    `Content-Length: ${body.length}`,
    "Expect: 100-continue",
    ...headers,
  ];
  socket.write(`${head.join("\r\n")}\r\n\r\n`);
  await expect.poll(received).toBe(CONTINUE);
  socket.write(body.slice(0, 10));
  const answer = closed.then((text) => text.slice(CONTINUE.length));
  return { finish: () => socket.write(body.slice(10)), answer };
}

const slowLogin = ({ url }: TestService) =>
  slowRequest(url, "/api/login", { username: "missing", password: "wrong-password" });

describe("stopping", () => {
  test("waits for a request in progress, and then releases the port and the files", async () => {
    const dataDir = testFolder();
    const service = await startService({ dataDir });
    const login = await slowLogin(service);
    process.kill(service.pid, "SIGTERM");
    await expect.poll(() => service.output()).toContain('"msg":"stopping"');
    // The service already rejects new connections.
    await expect.poll(() => fetch(service.url).catch((error: Error) => error.name)).toBe("TypeError");
    login.finish();
    expect(await login.answer).toMatch(/^HTTP\/1\.1 401 /);
    expect(await service.ended).toBe(0);
    expect(service.logs().at(-1)).toMatchObject({ msg: "stopped" });
    expect(service.output()).not.toContain("did not end in time");
    expect(readdirSync(dataDir).sort()).toEqual(KEPT_FILES);
    await expect(fetch(service.url)).rejects.toThrow();
  });

  test("waits for all listeners together up to the timeout, and then closes the requests in progress", {
    tags: ["long"],
  }, async () => {
    const service = await startInternal({ GATEHOUSE_SHUTDOWN_TIMEOUT: "1" });
    const authorized = [`X-Internal-Token: ${internalToken}`];
    const session = { uid: "0".repeat(64) };
    const hanging = [
      await slowLogin(service),
      await slowRequest(internalUrl(service), "/internal/sessions", session, authorized),
      await slowRequest(join(service.dataDir, "admin.sock"), "/users", { username: "ann" }),
    ];
    expect(await service.stop()).toBe(0);
    const timeOf = (text: string) => Number(service.logs().find(({ msg }) => msg.includes(text))?.time);
    const waited = timeOf("did not end in time") - timeOf("stopping");
    expect(waited).toBeGreaterThan(900);
    // Without this setting, the service would wait for ten seconds.
    expect(waited).toBeLessThan(9_000);
    // The listeners share one timeout. If they stopped one after another, each listener would wait for its own timeout.
    const cutOff = service
      .logs()
      .filter(({ msg }) => msg.includes("did not end in time; closing their connections"));
    expect(cutOff).toHaveLength(1);
    const [login] = await Promise.all(hanging.map(({ answer }) => answer));
    expect(login).not.toContain("200");
    await expect(fetch(internalUrl(service))).rejects.toThrow();
  });

  test("ends idle connections, and an event stream without a reader, immediately", {
    tags: ["long"],
  }, async () => {
    const metrics = { GATEHOUSE_METRICS_ADDRESS: "127.0.0.1:0" };
    const service = await startInternal({ GATEHOUSE_SHUTDOWN_TIMEOUT: "3600", ...metrics });
    const metricsUrl = service.output().match(/metrics open at (http:[^"]+)/)?.[1] ?? "";
    const adminSocket = join(service.dataDir, "admin.sock");
    const silent = [service.url, internalUrl(service), metricsUrl, adminSocket].map(openConnection);
    await Promise.all(silent.map(({ socket }) => once(socket, "connect")));
    const path = `/internal/sessions/${"0".repeat(64)}/events`;
    const stream = new WebSocket(internalUrl(service).replace("http:", "ws:") + path, {
      headers: { "X-Internal-Token": internalToken },
      perMessageDeflate: false,
    });
    await once(stream, "open");
    stream.pause();
    const streamClosed = once(stream, "close");
    // On one of the idle connections, the client sends the beginning of a request and never the rest.
    silent[0]?.socket.write("GET /info HTTP/1.1\r\nHost:");
    const answered = await fetch(service.url);
    await answered.arrayBuffer();
    expect(await service.stop()).toBe(0);
    await Promise.all(silent.map(({ closed }) => closed));
    stream.resume();
    expect((await streamClosed)[0]).toBe(1001);
    expect(service.output()).not.toContain("did not end in time");
  });

  test("a second signal ends the service immediately", { tags: ["long"] }, async () => {
    const service = await startService();
    await slowLogin(service);
    process.kill(service.pid, "SIGINT");
    await expect.poll(() => service.output()).toContain('"msg":"stopping"');
    expect(await service.stop()).toBe(1);
  });
});
