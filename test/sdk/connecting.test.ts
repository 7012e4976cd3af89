import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { MockAgent } from "undici";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  ConfigurationError,
  credentialsFromEnvironment,
  TransportError,
  ValidationError,
} from "../../sdk/index.ts";
import { makeCertificate, openssl } from "../support/certificate.ts";
import { testFolder } from "../support/folder.ts";
import { connect, createKey, failure } from "./scriptedClient.ts";
import { fakeTiming } from "./scriptedServer.ts";

/** A port on which no process listens. The operating system never assigns this port automatically. */
const CLOSED_PORT = 9;

async function listening(server: Server): Promise<number> {
  server.listen(0, "0.0.0.0");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

const refusal = (url: string, options = {}) =>
  failure(connect(url, { timing: fakeTiming().timing, ...options }).getTags(), TransportError);

test("reports address and port of a refused connection", async () => {
  const error = await refusal(`http://127.0.0.1:${CLOSED_PORT}/gatehouse`);
  expect(error.message).toContain(
    `Cannot connect to http://127.0.0.1:${CLOSED_PORT}: connection refused (ECONNREFUSED)`,
  );
});

test("reports a name that does not resolve, with its port", async () => {
  const error = await refusal("https://gatehouse.invalid");
  // The code is EAI_AGAIN on a machine without a name server.
  expect(error.message).toMatch(
    /Cannot connect to https:\/\/gatehouse\.invalid:443: the name gatehouse\.invalid does not resolve \((ENOTFOUND|EAI_AGAIN)\)/,
  );
});

test.each(["http://127.0.0.1:9", "http://gatehouse.invalid"])(
  "stops after 10 s if %s was never reachable",
  async (url) => {
    const slept: number[] = [];
    const clock = fakeTiming();
    const sleep = (ms: number, signal?: AbortSignal) => {
      slept.push(ms);
      return clock.timing.sleep(ms, signal);
    };
    const client = connect(url, { timing: { ...clock.timing, random: () => 0.999, sleep } });
    await failure(createKey(client), TransportError);
    expect(slept.length).toBeGreaterThan(0);
    expect(slept.reduce((sum, ms) => sum + ms)).toBe(10_000);
  },
);

test("tries twice to connect to an address that drops packets, for 5 s each time", async () => {
  const clock = fakeTiming();
  const dispatcher = new MockAgent();
  dispatcher.disableNetConnect();
  const reply = { path: "/api/tags", method: "GET" };
  dispatcher
    .get("http://10.0.0.1")
    .intercept({ path: /tags/, method: reply.method })
    .reply(() => {
      clock.advance(5000);
      throw Object.assign(new Error("x"), { code: "UND_ERR_CONNECT_TIMEOUT" });
    })
    .persist();
  const client = connect("http://10.0.0.1", { dispatcher, timing: clock.timing });
  const error = await failure(client.getTags(), TransportError);
  expect(error).toMatchObject({ reason: "unreachable", attempts: 2 });
  expect(error.message).toContain("http://10.0.0.1:80: no response (UND_ERR_CONNECT_TIMEOUT)");
  await dispatcher.close();
});

test("reports a service without TLS at an https URL, and prints the http URL", async () => {
  const port = await listening(createServer((_request, response) => response.end()));
  const error = await refusal(`https://127.0.0.1:${port}`);
  expect(error).toMatchObject({ reason: "untrusted", outcome: "none", attempts: 1 });
  expect(error.message).toContain(`https://127.0.0.1:${port} does not use TLS`);
  expect(error.message).toContain(`Set the URL to http://127.0.0.1:${port}`);
});

test.each([
  ["Client sent an HTTP request to an HTTPS server.\n", "text/plain"],
  ["<html><body><center>The plain HTTP request was sent to HTTPS port</center></body></html>", "text/html"],
])("prints the https URL if a proxy with TLS responds with %j", async (body, type) => {
  const port = await listening(
    createServer((_request, response) => response.writeHead(400, { "content-type": type }).end(body)),
  );
  const error = await failure(connect(`http://127.0.0.1:${port}`).getTags(), ValidationError);
  expect(error.message).toContain(`Set the URL to https://127.0.0.1:${port}`);
});

describe.skipIf(!openssl)("with a self-signed certificate", () => {
  async function start() {
    const { cert, key } = makeCertificate(testFolder(), "own");
    const server = createTlsServer(
      { cert: readFileSync(cert), key: readFileSync(key) },
      (_request, response) => response.writeHead(200, { "content-type": "application/json" }).end("[]"),
    );
    return { port: await listening(server), cert };
  }

  test("reports a service with TLS at an http URL, and prints the https URL", async () => {
    const { port } = await start();
    const error = await refusal(`http://127.0.0.1:${port}`);
    expect(error.message).toContain(`set the URL to https://127.0.0.1:${port}`);
  });

  test("reports the variables that make the certificate trusted", async () => {
    const { port } = await start();
    const error = await refusal(`https://127.0.0.1:${port}`);
    expect(error).toMatchObject({ reason: "untrusted", outcome: "none", attempts: 1 });
    expect(error.message).toContain(
      `The certificate of https://127.0.0.1:${port} is not trusted (DEPTH_ZERO_SELF_SIGNED_CERT)`,
    );
    expect(error.message).toMatch(/GATEHOUSE_CA_FILE.*NODE_EXTRA_CA_CERTS/);
  });

  test("reports a certificate for another name without GATEHOUSE_CA_FILE", async () => {
    const { port, cert } = await start();
    const error = await refusal(`https://127.0.0.2:${port}`, { ca: readFileSync(cert, "utf8") });
    expect(error.message).toContain(`The certificate of https://127.0.0.2:${port} is for a different name`);
    expect(error.message).not.toContain("GATEHOUSE_CA_FILE");
  });

  test("trusts GATEHOUSE_CA_FILE in addition to the default authorities", async () => {
    const { port, cert } = await start();
    const { url, ca } = credentialsFromEnvironment({
      GATEHOUSE_URL: `https://127.0.0.1:${port}`,
      GATEHOUSE_CA_FILE: cert,
    });
    expect(await connect(String(url), { ca: String(ca) }).getTags()).toEqual([]);
    const { getCACertificates, rootCertificates } = await import("node:tls");
    const { trusted } = await import("../../sdk/dispatcher.ts");
    const list = trusted(readFileSync(cert, "utf8"));
    expect(list).toEqual(expect.arrayContaining([...getCACertificates("default")]));
    expect(list.length).toBeGreaterThan(rootCertificates.length);
  });

  test("rejects a file without a certificate before the first request", () => {
    const { key } = makeCertificate(testFolder(), "wrong");
    expect(() => connect("https://127.0.0.1:9", { ca: readFileSync(key, "utf8") })).toThrow(
      ConfigurationError,
    );
    const missing = join(testFolder(), "missing.pem");
    expect(() => credentialsFromEnvironment({ GATEHOUSE_CA_FILE: missing })).toThrow(
      /^GATEHOUSE_CA_FILE: Cannot read .*missing\.pem: it does not exist\. Correct the path\.$/,
    );
    const empty = join(testFolder(), "empty.pem");
    writeFileSync(empty, "");
    expect(() => credentialsFromEnvironment({ GATEHOUSE_CA_FILE: empty })).toThrow(
      /is empty\. Write the value to the file, or set another file\.$/,
    );
  });
});
