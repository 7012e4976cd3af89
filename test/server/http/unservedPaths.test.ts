import { expect, test } from "vitest";
import { withSharedApp } from "./lab.ts";

const app = withSharedApp();

const UID = "0".repeat(64);

test.each([
  ["POST", "/healthcheck", "GET"],
  ["PUT", "/api/devices", "GET"],
  ["DELETE", "/api/login?a=/b", "POST"],
  ["GET", "/api/tags/production", "DELETE, PUT"],
  ["POST", `/api/devices/${UID}`, "DELETE, GET, PATCH, PUT"],
  // Written-out paths, whose method one with a parameter in the same place has.
  ["PATCH", `/api/devices/${UID}/tags`, "POST, PUT"],
  ["PUT", "/api/devices/auth", "POST"],
  ["PUT", "/api/namespaces/api-key", "GET, POST"],
])("%s %s is 405, with the methods that the path has", async (method, path, allowed) => {
  const { status, headers } = await app.send(method, path);
  expect([status, headers.get("allow")]).toEqual([405, allowed]);
  expect(headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
  expect(headers.get("cache-control")).toBe("no-store");
});

test("a body is not looked at before that", async () => {
  const { status } = await app.send("POST", "/healthcheck", { headers: { "content-type": ";" }, body: "{" });
  expect(status).toBe(405);
});

test.each(["/setup/", "/api", "/api/devices/", "/api/tags//", "/api/tags/a/b", "/API/devices"])(
  "%s is not served: 404",
  async (path) => {
    const { status, headers, body } = await app.send("GET", path);
    expect([status, headers.get("allow"), body]).toEqual([404, null, { message: "no such path" }]);
  },
);

test("operations behind a shadowed path go on answering", async () => {
  expect((await app.send("PATCH", `/api/devices/${UID}/reject`)).status).toBe(401);
  expect((await app.send("POST", `/api/devices/${UID}/tags`)).status).toBe(401);
  expect((await app.send("PUT", `/api/devices/${UID}`)).status).toBe(401);
});

test.each([
  ["PATCH", "/api/namespaces/00000000-0000-4000-8000-000000000000/members/accept-invite"],
  ["DELETE", "/api/user"],
])(
  "%s %s, which the cloud edition has, is 404 on others, whatever else its path could mean",
  async (method, path) => {
    expect((await app.send(method, path)).status).toBe(404);
  },
);
