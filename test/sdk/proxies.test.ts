import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { inspect } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  ConfigurationError,
  type Environment,
  HttpProxy,
  ProtocolError,
  proxiesFromEnvironment,
  ServerError,
  TransportError,
  workloadCredential,
} from "../../sdk/index.ts";
import { makeCertificate } from "../support/certificate.ts";
import { testFolder } from "../support/folder.ts";
import { PROXIED_HOST, proxied, startForwardProxy } from "../support/forwardProxy.ts";
import { freePort, listening } from "../support/listening.ts";
import { connect, failure } from "./scriptedClient.ts";

const SECRET = "very-secret";
const BOTH = { HTTP_PROXY: "http://plain:1", HTTPS_PROXY: "http://tls:2" };

describe("the proxy of an environment", () => {
  const proxyOf = (env: Environment, target: string) => proxiesFromEnvironment(env)(new URL(target))?.address;

  test.each<[Environment, string, string | undefined]>([
    [{}, "https://a.example", undefined],
    [BOTH, "https://a.example", "http://tls:2"],
    [BOTH, "wss://a.example", "http://tls:2"],
    [BOTH, "http://a.example", "http://plain:1"],
    [{ HTTP_PROXY: "http://plain:1" }, "https://a.example", undefined],
    [{ ...BOTH, https_proxy: "http://lower:3" }, "https://a.example", "http://lower:3"],
    [{ ...BOTH, https_proxy: "" }, "https://a.example", "http://tls:2"],
    [{ http_proxy: "proxy.example.org:3128" }, "http://a.example", "http://proxy.example.org:3128"],
    [{ https_proxy: "https://[2001:db8::1]:3128/" }, "https://a.example", "https://[2001:db8::1]:3128"],
  ])("in %j for %s is %s", (env, target, proxy) => {
    expect(proxyOf(env, target)).toBe(proxy);
  });

  test.each([
    ["a.example", "http://a.example", true],
    ["a.example", "https://b.a.example:8443", true],
    [".a.example", "https://a.example", true],
    ["*.a.example", "https://b.a.example", true],
    ["*.a.example", "https://a.example", false],
    ["a.example", "https://ba.example", false],
    ["A.Example.", "https://a.example", true],
    ["a.example", "https://a.example.", true],
    ["a.example:8443", "https://a.example:8443", true],
    ["a.example:443", "https://a.example", true],
    ["a.example:8443", "https://a.example", false],
    ["*", "https://a.example", true],
    ["other.example, a.example", "https://a.example", true],
    ["10.0.0.0/8", "http://10.1.2.3", true],
    ["10.0.0.0/8", "http://11.1.2.3", false],
    ["10.1.2.3:80", "http://10.1.2.3", true],
    ["10.0.0.0/99,10.0.0.0/", "http://10.1.2.3", false],
    ["2001:DB8:0::1", "http://[2001:db8::1]", true],
    ["[2001:db8::1]:80", "http://[2001:db8::1]", true],
    ["2001:db8::/32", "http://[2001:db8:1::1]", true],
    ["", "https://a.example", false],
  ])("with NO_PROXY=%s for %s: is not used = %s", (list, target, isExcepted) => {
    for (const name of ["NO_PROXY", "no_proxy"])
      expect(proxyOf({ ...BOTH, [name]: list }, target) === undefined).toBe(isExcepted);
  });

  test.each([
    "http://localhost:8080",
    "https://localhost.",
    "http://127.0.0.1",
    "http://127.8.9.10:1",
    "https://127.1",
    "https://[::1]:8443",
  ])("is not used for the loopback address %s, whatever NO_PROXY contains", (target) => {
    for (const NO_PROXY of ["", "a.example"]) expect(proxyOf({ ...BOTH, NO_PROXY }, target)).toBeUndefined();
  });

  test.each([
    SECRET,
    `http://ana:${SECRET}@proxy:99999`,
    `http://ana:${SECRET}%zz@proxy:1`,
    `socks5://ana:${SECRET}@proxy:1`,
    `http://proxy:1/${SECRET}`,
    `http://proxy:1/?${SECRET}`,
  ])("is rejected by the name of its variable if it is %s", (text) => {
    for (const variable of ["HTTPS_PROXY", "https_proxy"]) {
      const read = () => proxyOf({ [variable]: text }, "https://a.example");
      expect(read).toThrow(ConfigurationError);
      expect(read).toThrow(new RegExp(`^${variable}[: ](?!.*${SECRET}).*http://host:port`));
    }
  });

  test("shows no password when it is printed", () => {
    const proxy = new HttpProxy(`http://ana:${SECRET}@proxy:3128`);
    const printed = inspect(proxy, { depth: 9 }) + JSON.stringify(proxy) + String(proxy.authorization);
    expect(printed).toContain("http://proxy:3128");
    expect(printed).not.toContain(SECRET);
    expect(printed).not.toContain(proxy.authorization?.reveal().slice("Basic ".length));
  });
});

/** Starts a server with and without TLS that answers with an empty list, and a proxy. */
async function start(options: Parameters<typeof startForwardProxy>[0] & { readonly body?: string } = {}) {
  const { cert, key } = makeCertificate(testFolder(), "own");
  const [ca, secret] = [readFileSync(cert, "utf8"), readFileSync(key, "utf8")];
  const seen: object[] = [];
  const answer = ({ headers }: { headers: object }, response: import("node:http").ServerResponse) => {
    seen.push(headers);
    response.writeHead(200, { "content-type": "application/json" }).end(options.body ?? "[]");
  };
  const servers = [
    await listening(createServer(answer)),
    await listening(createTlsServer({ cert: ca, key: secret }, answer)),
    await startForwardProxy(options),
  ] as const;
  const [plain, tls, proxy] = servers;
  onTestFinished(async () => {
    for (const server of servers) await server.stop();
  });
  const port = new URL(tls.url).port;
  const account = options.account ? `${options.account}@` : "";
  const env = (name = "", url = proxy.url) => {
    const address = url.replace("://", `://${name || account}`);
    return { proxyFor: proxiesFromEnvironment({ HTTP_PROXY: address, https_proxy: address }) };
  };
  return { plain: proxied(plain.url), tls: `https://${PROXIED_HOST}:${port}`, proxy, ca, seen, env };
}

const ONCE = { retry: { attempts: 1 } };

describe("a client with a proxy", () => {
  test("sends http requests to the proxy, with an account that the service does not get", async () => {
    const { plain, proxy, seen, env } = await start({ account: `ana:${SECRET}` });
    expect(await connect(plain, env()).getTags()).toEqual([]);
    expect(proxy.requests).toEqual([expect.stringMatching(`^GET ${plain}/api/tags`)]);
    expect(seen).toEqual([expect.objectContaining({ host: new URL(plain).host })]);
    expect(JSON.stringify(seen)).not.toContain("proxy-authorization");
  });

  test("sends https requests through tunnels that it uses again, and trusts only the authorities of its options", async () => {
    const { tls, proxy, ca, env } = await start({ account: `ana:${SECRET}` });
    const client = connect(tls, { ...env(), ca });
    for (let count = 0; count < 8; count += 1) expect(await client.getTags()).toEqual([]);
    expect(new Set(proxy.requests)).toEqual(new Set([`CONNECT ${new URL(tls).host}`]));
    expect(proxy.requests.length).toBeLessThan(4);
    const error = await failure(connect(tls, { ...env(), ...ONCE }).getTags(), TransportError);
    expect(error).toMatchObject({ reason: "untrusted", outcome: "none" });
    expect(error.detail).toContain(
      `the certificate of ${tls} through the proxy ${proxy.url} is not trusted (DEPTH_ZERO_SELF_SIGNED_CERT)`,
    );
  });

  test("uses a proxy with TLS, whose certificate it verifies", async () => {
    const { cert, key } = makeCertificate(testFolder(), "proxy");
    const ca = readFileSync(cert, "utf8");
    const { plain, proxy, env } = await start({ tls: { cert: ca, key: readFileSync(key, "utf8") } });
    expect(await connect(plain, { ...env(), ca }).getTags()).toEqual([]);
    expect(proxy.requests).toEqual([`CONNECT ${new URL(plain).host}`]);
    const error = await failure(connect(plain, { ...env(), ...ONCE }).getTags(), TransportError);
    expect(error).toMatchObject({ reason: "untrusted", outcome: "none" });
    expect(error.detail).toContain(`the certificate of the proxy ${proxy.url} is not trusted`);
  });

  test("limits the size of a response", async () => {
    const { plain, tls, ca, env } = await start({ body: `["${"x".repeat(2000)}"]` });
    for (const url of [plain, tls])
      await failure(connect(url, { ...env(), ca, maxResponseSize: 1000 }).getTags(), ProtocolError);
  });

  test("limits the time to connect", async () => {
    const { tls, proxy, ca, env } = await start();
    proxy.stall();
    const client = connect(tls, { ...env(), ...ONCE, ca, connectTimeout: 20 });
    const error = await failure(client.getTags(), TransportError);
    expect(error).toMatchObject({ reason: "unreachable", outcome: "none" });
    expect(error.detail).toContain(`cannot connect to the proxy ${proxy.url}: no response`);
  });

  test("requests a token of GitHub through the proxy", async () => {
    const { plain, tls, proxy, ca, env } = await start({ body: '{"value":"a.b.c"}' });
    const source = { kind: "github", url: `${tls}/token`, requestToken: "r" } as const;
    const credential = workloadCredential({ tenant: "00000000-0000-4000-8000-000000000001", source });
    await failure(connect(plain, { ...env(), ...ONCE, ca, credential }).getTags(), Error);
    expect(proxy.requests).toEqual([`CONNECT ${new URL(tls).host}`, `POST ${plain}/api/auth/workload`]);
  });

  test("does not use a proxy of the environment without the option proxyFor", async () => {
    const { plain, proxy } = await start();
    const before = { ...process.env };
    Object.assign(process.env, { HTTP_PROXY: proxy.url, http_proxy: proxy.url });
    onTestFinished(() => {
      process.env = before;
    });
    await failure(connect(plain, ONCE).getTags(), TransportError);
    expect(proxy.requests).toEqual([]);
  });
});

describe("the error of a proxy", () => {
  const ACCOUNT = `ana:${SECRET}`;
  const errorOf = async (url: string, options: object) => {
    const error = await failure(connect(url, { ...ONCE, ...options }).getTags(), TransportError);
    expect(inspect(error, { depth: 9 })).not.toContain(SECRET);
    expect(error.outcome).toBe("none");
    return error;
  };

  test("without a connection contains the proxy, its variable and NO_PROXY", async () => {
    const { plain, tls, ca, env } = await start();
    const dead = `http://127.0.0.1:${await freePort()}`;
    for (const [url, variable] of [
      [plain, "HTTP_PROXY"],
      [tls, "https_proxy"],
    ] as const) {
      const error = await errorOf(url, { ...env(`${ACCOUNT}@`, dead), ca });
      expect(error).toMatchObject({
        reason: "unreachable",
        detail: `cannot connect to the proxy ${dead}: connection refused (ECONNREFUSED)`,
        remedy: `check ${variable}, or list ${PROXIED_HOST} in NO_PROXY to connect without a proxy`,
      });
    }
  });

  test("after a missing or wrong account contains the form of the variable", async () => {
    const { plain, tls, ca, proxy, env } = await start({ account: "ana:other" });
    for (const url of [plain, tls]) {
      expect(
        await errorOf(url, { proxyFor: () => new HttpProxy(proxy.url, "HTTPS_PROXY"), ca }),
      ).toMatchObject({
        reason: "proxy_refused",
        detail: `the proxy ${proxy.url} requires a user name and password (407)`,
        remedy: expect.stringContaining("set HTTPS_PROXY to http://user:password@host:port"),
      });
      expect((await errorOf(url, { ...env(`${ACCOUNT}@`), ca })).detail).toBe(
        `the proxy ${proxy.url} rejected the user name and password (407)`,
      );
    }
  });

  test("contains the status with which the proxy refuses the connection", async () => {
    const { plain, tls, ca, proxy, env } = await start();
    proxy.refuse(403);
    for (const url of [plain, tls]) {
      expect(await errorOf(url, { ...env(), ca })).toMatchObject({
        reason: "proxy_refused",
        detail: `the proxy ${proxy.url} refused the connection to ${url} (403)`,
      });
    }
    proxy.refuse(503);
    expect(await errorOf(tls, { ...env(), ca })).toMatchObject({
      reason: "unreachable",
      detail: `the proxy ${proxy.url} cannot connect to ${tls} (503)`,
    });
    const error = await failure(connect(plain, { ...env(), ...ONCE }).getTags(), ServerError);
    expect(error.detail).toContain(`the server, or the proxy ${proxy.url}, failed (503)`);
  });
});
