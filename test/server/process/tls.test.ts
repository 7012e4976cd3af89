import { once } from "node:events";
import { chmodSync, copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:https";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { connect } from "node:tls";
import { describe, expect, onTestFinished, test } from "vitest";
import { makeCertificate, openssl } from "../../support/certificate.ts";
import { testFolder } from "../../support/folder.ts";
import { callServerCommand } from "../../support/serverCommand.ts";
import { startService, type TestService, testService } from "../../support/service.ts";
import { expectFailure } from "./failure.ts";

const tlsEnv = ({ cert, key }: { cert: string; key: string }) => ({
  GATEHOUSE_TLS_CERT_FILE: cert,
  GATEHOUSE_TLS_KEY_FILE: key,
});

const start = (files: { cert: string; key: string }) => testService({ env: tlsEnv(files) });

/** Sends a request over the connection of the given HTTP agent. Without an agent, opens a new connection. */
async function get(service: TestService, path: string, ca: Buffer, agent?: Agent) {
  const sent = request(service.url + path, { ca, ...(agent ? { agent } : { agent: false }) }).end();
  const [response] = await once(sent, "response");
  return { status: response.statusCode, headers: response.headers, body: await text(response) };
}

describe.skipIf(!openssl)("TLS", () => {
  test("is served from two files, with TLS 1.2 or newer", async () => {
    const files = makeCertificate(testFolder(), "one");
    const service = await start(files);
    expect(service.url).toMatch(/^https:/);
    const ca = readFileSync(files.cert);
    expect((await get(service, "/healthz", ca)).status).toBe(200);
    const info = JSON.parse((await get(service, "/info", ca)).body);
    expect(info.endpoints.api).toBe(new URL(service.url).host);
    expect((await service.admin(["setup-link"])).stdout).toMatch(/^https:/);
    const old = connect({
      port: Number(new URL(service.url).port),
      ca,
      minVersion: "TLSv1.1",
      maxVersion: "TLSv1.1",
      ciphers: "ALL@SECLEVEL=0",
    });
    const [error] = await once(old, "error");
    expect(error.code).toMatch(/PROTOCOL_VERSION|WRONG_VERSION|ECONNRESET/);
    expect(service.output()).not.toContain("plain HTTP");
  });

  test("is renewed by SIGHUP while open connections continue; invalid files change nothing", {
    tags: ["long"],
  }, async () => {
    const folder = testFolder();
    const [one, two] = [makeCertificate(folder, "one"), makeCertificate(folder, "two")];
    const files = { cert: join(folder, "cert.pem"), key: join(folder, "key.pem") };
    const put = (from: { cert: string; key: string }) => {
      copyFileSync(from.cert, files.cert);
      copyFileSync(from.key, files.key);
    };
    put(one);
    const service = await start(files);
    const ca = Buffer.concat([readFileSync(one.cert), readFileSync(two.cert)]);
    const shown = async () => {
      const socket = connect({ port: Number(new URL(service.url).port), host: "127.0.0.1", ca });
      await once(socket, "secureConnect");
      const { subject } = socket.getPeerCertificate();
      socket.destroy();
      return subject.CN;
    };
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    await get(service, "/healthz", ca, agent);
    expect(await shown()).toBe("one");

    put(two);
    process.kill(service.pid, "SIGHUP");
    await expect.poll(() => service.output()).toContain("TLS certificate renewed");
    expect(await shown()).toBe("two");
    const sent = request(`${service.url}/healthz`, { ca, agent }).end();
    const [response] = await once(sent, "response");
    expect([response.statusCode, sent.reusedSocket]).toEqual([200, true]);
    response.resume();

    copyFileSync(one.cert, files.cert);
    process.kill(service.pid, "SIGHUP");
    await expect.poll(() => service.output()).toContain("cannot reload the TLS certificate");
    expect(await shown()).toBe("two");
    expect(service.output()).not.toContain("PRIVATE KEY");
  });

  test("does not start with invalid files", async () => {
    const folder = testFolder();
    const [one, two] = [makeCertificate(folder, "one"), makeCertificate(folder, "two")];
    const serve = (files: { cert: string; key: string }) =>
      callServerCommand(["serve", "--data-dir", testFolder(), "--port", "0"], { env: tlsEnv(files) });
    expectFailure(
      await serve({ cert: one.cert, key: two.key }),
      /^gatehouse-server: Cannot use the TLS certificate [^\n]*\n$/,
    );
    expectFailure(
      await serve({ ...one, cert: join(folder, "none.pem") }),
      "(GATEHOUSE_TLS_CERT_FILE): it does not exist. Correct the path.",
    );
    chmodSync(one.key, 0o640);
    chmodSync(two.key, 0o604);
    writeFileSync(join(folder, "not-pem"), "not a certificate");
    expectFailure(await serve(two), `Run \`chmod o= ${two.key}\``);
    expectFailure(await serve({ ...one, cert: join(folder, "not-pem") }), "Cannot use the TLS certificate");
  });
});

test("warns about plain HTTP on the network, but not on the local machine or behind a proxy", {
  tags: ["long"],
}, async () => {
  const warned = async (env: Record<string, string>) => {
    const service = await startService({ env });
    await service.stop();
    return service.logs().filter((line) => line.msg.startsWith("plain HTTP on the network")).length;
  };
  expect(await warned({ GATEHOUSE_HOST: "0.0.0.0" })).toBe(1);
  expect(await warned({ GATEHOUSE_HOST: "localhost" })).toBe(0);
});

test("behind a proxy, links and the API's endpoints use the public URL", { tags: ["long"] }, async () => {
  const service = await testService({
    env: {
      GATEHOUSE_HOST: "0.0.0.0",
      GATEHOUSE_TRUSTED_PROXIES: "10.0.0.0/8",
      GATEHOUSE_PUBLIC_URL: "https://gate.example.org/",
    },
  });
  expect((await service.admin(["setup-link"])).stdout).toMatch(
    /^https:\/\/gate\.example\.org\/setup\?sign=[0-9a-f]{64}\n$/,
  );
  const info = (await (await fetch(`${service.url}/info`)).json()) as { endpoints: object };
  expect(info.endpoints).toEqual({ ssh: "gate.example.org:22", api: "gate.example.org:443" });
  expect(service.output()).not.toContain("plain HTTP");
});
