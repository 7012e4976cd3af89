import { request } from "node:http";
import { text } from "node:stream/consumers";
import Fastify from "fastify";
import { expect, onTestFinished, test } from "vitest";
import { gatherFacts } from "../../../server/http/listener/requestFacts.ts";
import type { ServiceSettings } from "../../../server/settings/readConfig.ts";
import { testApp } from "./appOfTest.ts";
import { reportOf } from "./testApp.ts";

const PROXIES = ["127.0.0.1", "10.0.0.0/8"];

/** Returns the facts that the server derives from a request with these headers. The request comes from 127.0.0.1. */
async function factsOf(headers: Record<string, string>, trustedProxies: readonly string[] = PROXIES) {
  const app = Fastify();
  onTestFinished(() => app.close());
  gatherFacts(app, { trustedProxies } as ServiceSettings);
  app.get("/", async ({ facts: { address, network, origin } }) => ({
    address,
    network,
    origin: origin.href,
  }));
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  // `fetch` does not allow a custom Host header.
  const answer = await new Promise<string>((resolve, reject) => {
    const sent = request(url, { headers }, (response) => resolve(text(response)));
    sent.on("error", reject).end();
  });
  return JSON.parse(answer) as { address: string; network: string; origin: string };
}

const address = async (headers: Record<string, string>, proxies?: readonly string[]) =>
  (await factsOf(headers, proxies)).address;
const origin = async (headers: Record<string, string>, proxies?: readonly string[]) =>
  (await factsOf({ host: "inside:8080", ...headers }, proxies)).origin;

test("ignores the forwarding headers of untrusted clients", async () => {
  const spoofed = {
    host: "gate.example.org",
    "x-real-ip": "203.0.113.7",
    "x-forwarded-for": "203.0.113.7",
    "x-forwarded-host": "evil.example",
    "x-forwarded-port": "1",
    "x-forwarded-proto": "https",
  };
  const facts = { address: "127.0.0.1", network: "127.0.0.1", origin: "http://gate.example.org/" };
  expect(await factsOf(spoofed, [])).toEqual(facts);
  expect(await factsOf(spoofed, ["10.0.0.0/8", "::1"])).toEqual(facts);
});

test("uses a trusted proxy's X-Real-IP as the client's address, including IPv6 addresses", async () => {
  expect(await address({ "x-real-ip": "203.0.113.7", "x-forwarded-for": "198.51.100.1" })).toBe(
    "203.0.113.7",
  );
  expect(await factsOf({ "x-real-ip": "2001:DB8:1:2:3::4" })).toMatchObject({
    address: "2001:db8:1:2:3::4",
    network: "2001:db8:1:2::/64",
  });
});

test("uses the last address in X-Forwarded-For that is not a trusted proxy", async () => {
  const forwarded = (list: string) => address({ "x-forwarded-for": list });
  expect(await forwarded("203.0.113.7")).toBe("203.0.113.7");
  expect(await forwarded("192.0.2.66, 203.0.113.7, 10.1.1.1")).toBe("203.0.113.7");
  expect(await forwarded("203.0.113.7:50123")).toBe("203.0.113.7");
  expect(await forwarded("[2001:db8::7]:50123")).toBe("2001:db8::7");
  expect(await forwarded("10.1.1.2, 10.1.1.1")).toBe("10.1.1.2");
  // Behind two proxies, the inner proxy sets X-Real-IP to the address of the outer proxy. Only X-Forwarded-For contains
  // the client's address.
  expect(await address({ "x-real-ip": "10.1.1.1", "x-forwarded-for": "203.0.113.7, 10.1.1.1" })).toBe(
    "203.0.113.7",
  );
});

test("ignores the addresses beyond an unreadable address", async () => {
  expect(await address({ "x-forwarded-for": "203.0.113.7, unknown, 10.1.1.1" })).toBe("10.1.1.1");
  expect(await address({ "x-forwarded-for": "203.0.113.7, " })).toBe("127.0.0.1");
  expect(await address({ "x-real-ip": "<script>" })).toBe("127.0.0.1");
  expect(await address({ "x-real-ip": "203.0.113.7, 203.0.113.8" })).toBe("127.0.0.1");
});

test("derives the origin from a trusted proxy's headers, each of them optional", async () => {
  expect(await origin({})).toBe("http://inside:8080/");
  expect(await origin({ "x-forwarded-proto": "https" })).toBe("https://inside:8080/");
  expect(await origin({ "x-forwarded-host": "gate.example.org", "x-forwarded-proto": "https" })).toBe(
    "https://gate.example.org/",
  );
  expect(await origin({ "x-forwarded-host": "gate.example.org", "x-forwarded-port": "8443" })).toBe(
    "http://gate.example.org:8443/",
  );
  expect(await origin({ "x-forwarded-host": "gate.example.org:1234", "x-forwarded-port": "8443" })).toBe(
    "http://gate.example.org:1234/",
  );
  expect(await origin({ host: "[::1]", "x-forwarded-port": "8443" })).toBe("http://[::1]:8443/");
  expect(await origin({ "x-forwarded-proto": "http, https" })).toBe("https://inside:8080/");
});

test("ignores a host header with more than a host and a port", async () => {
  for (const host of ["a/b", "user@evil.example", "a?b", "a b", "a:99999"]) {
    expect(await origin({ "x-forwarded-host": host })).toBe("http://localhost/");
  }
  expect(await origin({ "x-forwarded-proto": "javascript" })).toBe("http://inside:8080/");
  expect(await origin({ "x-forwarded-port": "99999", "x-forwarded-host": "a" })).toBe("http://a/");
});

test("an IPv6 client cannot bypass a lockout within its network", async () => {
  const app = await testApp({ trustedProxies: ["127.0.0.0/8"] });
  await app.user("ana");
  const attempt = async (ip: string) =>
    (await app.call("login", { body: { username: "ana", password: "x" }, headers: { "x-real-ip": ip } }))
      .status;
  await attempt("2001:db8:1:2::1");
  await attempt("2001:db8:1:2::2");
  expect(await attempt("2001:db8:1:2:ffff::3")).toBe(429);
  expect(await attempt("2001:db8:1:3::1")).toBe(401);
});

test("stores the address that a trusted proxy reports for a device", async () => {
  const app = await testApp({ trustedProxies: ["127.0.0.1"] });
  const ana = await app.user("ana", "home");
  const body = reportOf(ana.tenant, "h");
  const reported = await app.call("authDevice", { body, headers: { "x-real-ip": "203.0.113.7" } });
  const device = await ana.call("getDevice", { params: { uid: reported.body.uid } });
  expect(device.body.remote_addr).toBe("203.0.113.7");
});
