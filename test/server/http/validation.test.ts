import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { text as textOf } from "node:stream/consumers";
import { beforeAll, describe, expect, test } from "vitest";
import { expectError, NOT_FOUND } from "./answers.ts";
import { testApp, withSharedApp } from "./appOfTest.ts";
import { encodeFilter, enroll, operator, PASSWORD, PUBLIC_KEY, property, type TestUser } from "./testApp.ts";

let ana: TestUser;
let uid: string;
const app = withSharedApp();
beforeAll(async () => {
  ana = await app.user("ana", "lab");
  ({ uid } = await enroll(app, ana.tenant, "00:00:00:00:00:01"));
});

const json = { "content-type": "application/json" };
const authorized = () => ({ ...json, authorization: `Bearer ${ana.token}` });
const put = (body: string, headers: Record<string, string> = authorized()) =>
  app.send("PUT", `/api/devices/${uid}`, { headers, body });

describe("validation of a body", () => {
  test.each([
    ["{", 422, "body must be JSON"],
    ["\u0000", 422, "body must be JSON"],
    ["[]", 422, "body must be an object"],
    ["null", 422, "body must be an object"],
    ['"text"', 422, "body must be an object"],
    ['{"name":5}', 422, "name must be a string"],
    ['{"name":null}', 422, "name must be a string"],
    ['{"public_url":"yes"}', 422, "public_url must be true or false"],
    ['{"name":""}', 400, "name must have at least 1 character; name may contain letters, digits, _ and -"],
    ['{"name":"a b"}', 400, "name may contain letters, digits, _ and -"],
    ['{"name":"a.b","public_url":1}', 422, "public_url must be true or false"],
  ])("%j returns %i: %s", async (body, status, message) => {
    expectError(await put(body), status, message);
  });

  test("accepts unknown fields", async () => {
    expect((await put('{"name":"extra","created_at":"x","__proto__":{"a":1}}')).status).toBe(200);
  });

  test("accepts a missing body if no field is required, and otherwise reports the required fields", async () => {
    expect((await app.send("PUT", `/api/devices/${uid}`, { headers: authorized() })).status).toBe(200);
    expectError(
      await app.send("PATCH", `/api/devices/${uid}`, { headers: authorized() }),
      400,
      "name is required and must be a string",
    );
  });

  test("rejects encodings other than UTF-8", async () => {
    const body = new Uint8Array([0x7b, 0x22, 0x6e, 0x22, 0x3a, 0x22, 0xff, 0x22, 0x7d]);
    const { status } = await app.send("PUT", `/api/devices/${uid}`, { headers: authorized(), body });
    expect(status).toBe(422);
  });

  test("returns 415 for another content type, and 413 for more than 64 KiB", async () => {
    const headers = { authorization: `Bearer ${ana.token}`, "content-type": "text/plain" };
    expect((await put("{}", headers)).status).toBe(415);
    // The JSON text without the value of `name` has 11 bytes: `{"name":""}`.
    const ofSize = (size: number) => JSON.stringify({ name: "a".repeat(size - 11) });
    expect(Buffer.byteLength(ofSize(64 * 1024))).toBe(64 * 1024);
    expect((await put(ofSize(64 * 1024))).status).toBe(400);
    const { status, body } = await put(ofSize(64 * 1024 + 1));
    expect([status, typeof body.message]).toEqual([413, "string"]);
  });

  test("accepts a report with the maximum number of sessions and the longest key", async () => {
    const sessions = Array.from({ length: 1000 }, (_, n) => String(n).padStart(64, "0"));
    const more = { sessions, public_key: "k".repeat(4096) };
    expect((await enroll(app, ana.tenant, "00:00:00:00:00:02", more)).uid).toMatch(/^[0-9a-f]{64}$/);
  });

  test("reads a body of any depth", async () => {
    const deep = `${"[".repeat(30_000)}${"]".repeat(30_000)}`;
    expect((await put(`{"name":${deep}}`)).status).toBe(422);
    expect((await put(`{"name":"deep","more":${deep}}`)).status).toBe(200);
  });

  test("does not add fields to the prototypes of the service's objects", async () => {
    await put('{"name":"proto","__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}');
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });

  test("ignores the body of a request if the operation has no body", async () => {
    const answer = await app.send("DELETE", `/api/devices/${uid}/tags/nowhere`, {
      headers: authorized(),
      body: "not json",
    });
    expect(answer.body).toMatchObject({ message: "tag: the device does not have this tag" });
  });
});

const UNSTORABLE = [
  ["NUL", "a\0b"],
  ["a high surrogate", "a\ud800b"],
  ["a low surrogate", "\udc00"],
] as const;
const REPORT = {
  info: { id: "debian", pretty_name: "x", version: "1", arch: "amd64", platform: "native" },
  hostname: "gate",
  public_key: "k",
  tenant_id: "00000000-0000-4000-0000-000000000000",
};
const NOT_STORED = "must contain neither NUL nor a lone surrogate";

describe.each(UNSTORABLE)("rejects a text with %s with 400, and reports its field", (_, text) => {
  test.each([
    ["login", { username: text, password: "x" }, "username"],
    ["login", { username: "ana", password: text }, "password"],
    ["authDevice", { ...REPORT, info: { ...REPORT.info, pretty_name: text } }, "info.pretty_name"],
    ["authDevice", { ...REPORT, sessions: ["fine", text] }, "sessions.1"],
  ] as const)("in the body of %s: %#", async (id, body, field) => {
    expectError(await app.call(id, { body }), 400, `${field} ${NOT_STORED}`);
  });

  test("in an operation that returns the names of fields", async () => {
    const body = { name: text };
    const answer = await ana.call("updateUser", { body });
    expect([answer.status, answer.body]).toEqual([400, ["name"]]);
  });

  test("in the value of a filter", async () => {
    for (const value of [text, ["fine", text]]) {
      const filter = encodeFilter([property("name", "contains", value)]);
      expectError(
        await ana.call("getDevices", { query: { filter } }),
        400,
        /^filter(\.1)? must contain neither NUL/,
      );
    }
  });
});

test("rejects NUL in a query with 400 and in an id with 404, and never decodes invalid UTF-8 to a surrogate", async () => {
  const named = async (path: string, method = "GET") => {
    const { status, body } = await app.send(method, path, { headers: authorized() });
    return [status, body.message];
  };
  expect(await named("/api/devices?sort_by=a%00b")).toEqual([400, `sort_by ${NOT_STORED}`]);
  expect(await named("/api/namespaces/api-key/a%00b", "DELETE")).toEqual([
    404,
    `key: no such object exists; the value ${NOT_STORED}`,
  ]);
  expect(await named("/api/namespaces/api-key/%ED%A0%80", "DELETE")).toEqual([
    400,
    "URL must be well-formed",
  ]);
});

test("rejects a new password of more than 72 bytes, since bcrypt would ignore the rest", async () => {
  const pat = await app.user("pat");
  const change = (password: string) =>
    pat.call("updateUser", { body: { password, current_password: PASSWORD } });
  const refused = await change("\u20ac".repeat(25));
  expect([refused.status, refused.body]).toEqual([400, ["password"]]);
  expect((await change("\u20ac".repeat(24))).status).toBe(200);
});

describe("a query", () => {
  test.each([
    ["per_page=x", 422],
    ["page=1.5", 422],
    ["page=1e3", 422],
    ["status=odd", 400],
    ["page=1&page=2", 400],
    ["page=&per_page=&status=&filter=&sort_by=&order_by=", 200],
    ["page=-5&per_page=0&order_by=sideways&sort_by=nonsense&unknown=1", 200],
    ["page=99999999999999999999", 200],
  ])("%s returns %i", async (query, status) => {
    const answer = await app.send("GET", `/api/devices?${query}`, { headers: authorized() });
    expect(answer.status, answer.text).toBe(status);
  });

  test("order_by of API keys must be asc or desc", async () => {
    expectError(
      await ana.call("listApiKeys", { query: { order_by: "up" } }),
      400,
      "order_by must be one of asc, desc",
    );
  });
});

describe("a pattern", () => {
  const create = (username: string) => ana.call("createPublicKey", { body: { ...PUBLIC_KEY, username } });

  test("that causes endless backtracking in other engines is accepted quickly", async () => {
    const started = performance.now();
    const answer = await create(`${"(a+)+".repeat(20)}$`);
    expect(answer.status).toBe(200);
    const list = await ana.call("getPublicKeys");
    expect(list.body).toHaveLength(1);
    expect(performance.now() - started).toBeLessThan(20_000);
  });

  test("of fifty thousand characters is rejected for its length", async () => {
    expectError(await create("(a+)+".repeat(10_000)), 400, "username must have at most 1024 characters");
  });

  test("with invalid syntax is rejected with the reason", async () => {
    for (const pattern of ["(", "a**", "(?=a)", "\\1"]) {
      expectError(await create(pattern), 400, /^username must be a regular expression in RE2 syntax/, {
        label: pattern,
      });
    }
  });
});

test("returns a message with 404 for an unknown path, 405 for another method and 400 for a broken URL", async () => {
  for (const [method, path, expected] of [
    ["GET", "/api/nothing", 404],
    ["POST", "/api/devices", 405],
    ["GET", "/api/devices/%zz", 400],
  ] as const) {
    const { status, body } = await app.send(method, path, { headers: authorized() });
    expect([status, typeof body.message], path).toEqual([expected, "string"]);
  }
});

test("returns 404 for a malformed id, and 400 with the allowed values for an unknown choice", async () => {
  const get = async (method: string, path: string) => {
    const { status, body } = await app.send(method, path, { headers: authorized() });
    return [status, body.message];
  };
  expect(await get("GET", "/api/devices/nope")).toEqual([
    404,
    "uid: no such object exists; the value must be 64 lower-case hex characters",
  ]);
  expect((await get("GET", `/api/firewall/rules/${"1".repeat(24)}`))[0]).toBe(404);
  const statuses = "status must be one of accept, reject, pending, unused";
  expect(await get("PATCH", `/api/devices/${uid}/allow`)).toEqual([400, statuses]);
  expect((await get("PATCH", "/api/devices/nope/allow"))[0]).toBe(404);
});

test("rejects a long tag by its rule, not by the router", async () => {
  expectError(
    await ana.call("deleteTag", { params: { tag: "a".repeat(300) } }),
    404,
    "tag: no such object exists; the value must have at most 255 characters",
    NOT_FOUND,
  );
});

test("returns 500 without the cause for an unexpected failure, and logs the cause with the request id", async () => {
  const broken = await testApp();
  const user = await broken.user("eve", "eve");
  await broken.services.db.$executeRawUnsafe('ALTER TABLE "Tag" RENAME TO "Missing"');
  const { status, body, headers } = await user.call("getTags");
  expect([status, body]).toEqual([500, { message: "internal error" }]);
  expect(headers.get("x-request-id")).toBeTruthy();
});

test("accepts a filter of the maximum length in the request line", async () => {
  const filter = encodeFilter(Array(100).fill(operator("and")));
  expect((await ana.call("getDevices", { query: { filter } })).status).toBe(200);
  const long = await ana.call("getDevices", { query: { filter: "A".repeat(20_000) } });
  expect(long.status).toBe(400);
});

test("decodes a filter whose plus signs arrived as spaces", async () => {
  // The base64 text of `["~~~>>>???"]` contains a plus sign. This client does not percent-encode it.
  const filter = encodeFilter([property("name", "eq", "~~>")]);
  const text = Buffer.from('["~~~>>>???"]').toString("base64");
  expect(text).toContain("+");
  const headers = { authorization: `Bearer ${ana.token}` };
  const request = httpRequest(`${app.url}/api/devices?filter=${text}`, { headers }).end();
  const [response] = await once(request, "response");
  // The error is about the filter's items, so the service has decoded the base64 and parsed the JSON.
  expect(await textOf(response)).toContain("must be an array of");
  expect((await ana.call("getDevices", { query: { filter } })).body).toEqual([]);
});
