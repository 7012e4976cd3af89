import { expect, test } from "vitest";
import { withSharedApp } from "./appOfTest.ts";

const app = withSharedApp();

const UID = "0".repeat(64);

test.each([
  ["POST", "/healthcheck", "GET"],
  ["PUT", "/api/devices", "GET"],
  ["DELETE", "/api/login?a=/b", "POST"],
  ["GET", "/api/tags/production", "DELETE, PUT"],
  ["POST", `/api/devices/${UID}`, "DELETE, GET, PATCH, PUT"],
  // Each path matches a route with a literal last segment. The method exists only for the route with a parameter in
  // place of this segment.
  ["PATCH", `/api/devices/${UID}/tags`, "POST, PUT"],
  ["PUT", "/api/devices/auth", "POST"],
  ["PUT", "/api/namespaces/api-key", "GET, POST"],
])("%s %s returns 405, with the methods of the path", async (method, path, allowed) => {
  const { status, headers } = await app.send(method, path);
  expect([status, headers.get("allow")]).toEqual([405, allowed]);
  expect(headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
  expect(headers.get("cache-control")).toBe("no-store");
});

test("returns 405 before it reads the body", async () => {
  const { status } = await app.send("POST", "/healthcheck", { headers: { "content-type": ";" }, body: "{" });
  expect(status).toBe(405);
});

test.each(["/setup/", "/api", "/api/devices/", "/api/tags//", "/api/tags/a/b", "/API/devices"])(
  "returns 404 for %s",
  async (path) => {
    const { status, headers, body } = await app.send("GET", path);
    expect([status, headers.get("allow"), body]).toEqual([404, null, { message: "no such path" }]);
  },
);

test("serves operations behind a shadowed path", async () => {
  expect((await app.send("PATCH", `/api/devices/${UID}/reject`)).status).toBe(401);
  expect((await app.send("POST", `/api/devices/${UID}/tags`)).status).toBe(401);
  expect((await app.send("PUT", `/api/devices/${UID}`)).status).toBe(401);
});

test.each([
  ["PATCH", "/api/namespaces/00000000-0000-4000-8000-000000000000/members/accept-invite"],
  ["DELETE", "/api/user"],
])(
  "%s %s, an operation of the cloud edition, returns 404 on other editions, even if other paths match",
  async (method, path) => {
    expect((await app.send(method, path)).status).toBe(404);
  },
);
