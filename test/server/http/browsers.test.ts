import { describe, expect, test } from "vitest";
import { testApp, withSharedApp } from "./appOfTest.ts";
import type { TestApp } from "./testApp.ts";

const CONSOLE = "https://console.example.org";

describe("the headers for browsers", () => {
  const paths = ["/info", "/api/devices", "/nowhere", "/api/devices/%zz", "/openapi.json"];

  test("restrict the browser in every response, whatever its status", async () => {
    const app = await testApp();
    for (const path of paths) {
      const { headers, status } = await app.send("GET", path);
      const shown = (name: string) => [path, status, headers.get(name)];
      const policy = "default-src 'none'; frame-ancestors 'none'";
      expect(shown("content-security-policy")).toEqual([path, status, policy]);
      expect(shown("x-content-type-options")).toEqual([path, status, "nosniff"]);
      expect(shown("referrer-policy")).toEqual([path, status, "no-referrer"]);
      expect(shown("cache-control")).toEqual([path, status, "no-store"]);
      expect(shown("strict-transport-security")).toEqual([path, status, null]);
      expect(headers.get("access-control-allow-origin")).toBeNull();
    }
  });

  test("contain Strict-Transport-Security only with TLS", async () => {
    const hsts = async (app: TestApp, headers: Record<string, string> = {}) =>
      (await app.send("GET", "/info", { headers })).headers.get("strict-transport-security");
    const byTls = { "x-forwarded-proto": "https" };
    expect(await hsts(await testApp({ publicUrl: "https://gate.example.org" }))).toBe("max-age=31536000");
    const proxied = await testApp({ trustedProxies: ["127.0.0.1"] });
    expect(await hsts(proxied, byTls)).toBe("max-age=31536000");
    expect(await hsts(proxied)).toBeNull();
    expect(await hsts(await testApp(), byTls)).toBeNull();
  });
});

describe("pages of other origins", () => {
  const app = withSharedApp({ corsOrigins: [CONSOLE] });

  const preflight = (origin: string, path = "/api/login") =>
    app.send("OPTIONS", path, {
      headers: {
        origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type",
      },
    });

  test("can call the service if they are allowed, and read the headers that clients need", async () => {
    const response = await preflight(CONSOLE);
    expect(response.status).toBe(204);
    expect(response.headers.get("access-control-allow-origin")).toBe(CONSOLE);
    expect(response.headers.get("access-control-allow-methods")).toContain("POST");
    expect(response.headers.get("access-control-allow-headers")).toMatch(
      /Authorization.*X-API-Key.*Gatehouse-Declared-By.*Gatehouse-Lockout-Guard/,
    );
    const { status, headers } = await app.send("GET", "/api/devices", { headers: { origin: CONSOLE } });
    expect(status).toBe(401);
    expect(headers.get("access-control-allow-origin")).toBe(CONSOLE);
    expect(headers.get("vary")).toContain("Origin");
    expect(headers.get("access-control-expose-headers")).toBe(
      "X-Total-Count, X-Account-Lockout, X-MFA-Token, X-Expires-At, ETag, X-Request-ID, Retry-After, Gatehouse-Lockout-Guard",
    );
    expect(headers.get("access-control-allow-credentials")).toBeNull();
  });

  test("receive Vary with every header that changes a response", async () => {
    const { token } = await app.user("vera", "vera");
    const { status, headers } = await app.send("GET", `/api/sessions/${"0".repeat(64)}/records/0`, {
      headers: { origin: CONSOLE, authorization: `Bearer ${token}` },
    });
    expect([status, headers.get("vary")]).toEqual([404, "Origin, Accept"]);
  });

  test.each([
    "https://evil.example",
    "null",
    "https://console.example.org.evil.example",
    "http://console.example.org",
  ])("%s is not allowed", async (origin) => {
    expect((await preflight(origin)).headers.get("access-control-allow-origin")).toBeNull();
    const { headers } = await app.send("GET", "/info", { headers: { origin } });
    expect(headers.get("access-control-allow-origin")).toBeNull();
  });

  test("receive 405 for a preflight request if no origin is allowed", async () => {
    const closed = await testApp();
    const response = await closed.send("OPTIONS", "/api/login", {
      headers: { origin: CONSOLE, "access-control-request-method": "POST" },
    });
    expect(response.status).toBe(405);
    expect(response.headers.get("access-control-allow-origin")).toBeNull();
  });
});
