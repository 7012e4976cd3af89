import fc from "fast-check";
import { expect, test } from "vitest";
import {
  AuthenticationError,
  type Client,
  ConfigurationError,
  ConflictError,
  createClient,
  declarationOf,
  declaredByText,
  isNotFound,
  LockoutGuardError,
  NotFoundError,
  PaymentError,
  PermissionError,
  PreconditionFailedError,
  ProtocolError,
  RequestError,
  ServerError,
  tokenCredential,
  ValidationError,
  where,
} from "../../sdk/index.ts";
import { connect, createKey, failure, KEY, start, wireKey, wireNamespace } from "./scriptedClient.ts";
import { fakeToken, scriptedServer, TENANT } from "./scriptedServer.ts";

test("converts camelCase keys to snake_case on the wire, and back", async () => {
  const { server, client } = await start();
  server.script({ body: { ...wireNamespace, settings: { session_record: true }, device_count: 3 } });
  const namespace = await client.editNamespace({
    params: { tenant: TENANT },
    body: { settings: { sessionRecord: true, connectionAnnouncement: "a_b" } },
  });
  expect(namespace).toMatchObject({ tenantId: TENANT, settings: { sessionRecord: true }, deviceCount: 3 });
  expect(namespace).not.toHaveProperty("device_count");
  expect(server.requests[0]).toMatchObject({
    method: "PUT",
    path: `/api/namespaces/${TENANT}`,
    body: { settings: { session_record: true, connection_announcement: "a_b" } },
    headers: { "x-api-key": KEY, "content-type": "application/json", "user-agent": "gatehouse-sdk" },
  });
});

test("keeps fields that are not in the contract", async () => {
  const { server, client } = await start();
  server.script({ body: { ...wireNamespace, settings: { ssh_access_mode: "x" } } });
  expect(await client.getNamespace({ params: { tenant: TENANT } })).toMatchObject({
    tenantId: TENANT,
    devices_accepted_count: 2,
    settings: { ssh_access_mode: "x" },
  });
});

test("returns fields that a newer server adds to its objects", async () => {
  const { server, client } = await start();
  const names = [
    "name",
    "identity",
    "info",
    "namespace",
    "status",
    "created_at",
    "position",
    "tags",
    "online",
  ];
  const device = {
    uid: "u",
    tenant_id: TENANT,
    revision: 7,
    ...Object.fromEntries(names.map((n) => [n, n])),
  };
  server.script({ body: [device] }, { body: device }, { body: { ...wireKey, revision: 1 } });
  const known = { uid: "u", tenantId: TENANT, revision: 7 };
  expect(await client.getDevices()).toMatchObject([known]);
  expect(await client.getDevice({ params: { uid: "u" } })).toMatchObject(known);
  expect(await createKey(client)).toMatchObject({ tenantId: TENANT, revision: 1 });
});

test("escapes query, filter and path parameters", async () => {
  const { server, client } = await start();
  server.always({ body: [] });
  const filter = where("name").eq("ü+/=");
  await client.getDevices({ query: { filter, perPage: 5, sortBy: "name" } });
  const { searchParams } = new URL(server.requests[0]?.path ?? "", server.url);
  expect(Object.fromEntries(searchParams)).toEqual({
    filter: filter.toString(),
    per_page: "5",
    sort_by: "name",
  });
  await client.deleteTag({ params: { tag: "a/b?c" } });
  expect(server.requests[1]?.path).toBe("/api/tags/a%2Fb%3Fc");
});

test("also sends the removed tag in the body, where servers of version 0.19 read the tag", async () => {
  const { server, client } = await start();
  server.always({ status: 200 });
  await client.deleteDeviceTag({ params: { uid: "aa", tag: "prod" } });
  expect(server.requests[0]).toMatchObject({ path: "/api/devices/aa/tags/prod", body: { tag: "prod" } });
});

test.each(["", ".", ".."])("rejects the path parameter %j", async (tag) => {
  const { server, client } = await start();
  await failure(client.deleteTag({ params: { tag } }), ConfigurationError);
  expect(server.requests).toEqual([]);
});

test("keeps the path of the URL and sends user agent, headers and idempotency key", async () => {
  const server = await scriptedServer();
  const client = connect(`${server.url}/base/`, { userAgent: "mine/1" });
  server.script({ body: wireKey });
  await createKey(client, {
    idempotencyKey: "k1",
    headers: { "X-Forwarded-Host": "h", "X-API-Key": "not this" },
  });
  expect(server.requests[0]).toMatchObject({ path: "/base/api/sshkeys/public-keys" });
  expect(server.requests[0]?.headers).toMatchObject({
    "idempotency-key": "k1",
    "x-forwarded-host": "h",
    "user-agent": "mine/1",
    "x-api-key": KEY,
  });
});

test("sends the declaration only with requests that change objects of a program", async () => {
  const { server, client } = await start({ credential: tokenCredential(fakeToken({ tenant: TENANT })) });
  server.always({ status: 200, body: [] });
  const declaring = client.declaring({ project: "fleet", stack: "prod", resource: "a/b: ключ" });
  const params = { tag: "prod" };
  await declaring.deleteTag({ params });
  await declaring.forTenant(TENANT).deleteTag({ params });
  await declaring.getDevices();
  await declaring.deleteTunnel({ params: { uid: "aa", address: "bb" } });
  await client.deleteTag({ params });
  await client
    .declaring({ project: "fleet", stack: "prod", resource: "x".repeat(1020) })
    .deleteTag({ params });
  const text = "fleet/prod/a%2Fb%3A%20%D0%BA%D0%BB%D1%8E%D1%87";
  expect(server.requests.map(({ headers }) => headers["gatehouse-declared-by"])).toEqual([
    text,
    text,
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
});

test("parses the text of a declaration back to the same declaration", () => {
  const name = fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 });
  const declarations = fc.record({ project: name, stack: name, resource: name }, { noNullPrototype: true });
  fc.assert(
    fc.property(declarations, (declaration) => {
      const text = declaredByText(declaration);
      if (text === undefined) {
        const names = Object.values(declaration).join("");
        expect(/\p{Cc}/u.test(names) || encodeURIComponent(names).length > 1022).toBe(true);
      } else {
        expect(declarationOf(text)).toEqual(declaration);
        expect(text).toMatch(/^[!-~]{5,1024}$/);
      }
    }),
  );
});

test("sends ifMatch unchanged, and only if the caller sets it", async () => {
  const { server, client } = await start();
  server.always({ status: 200 });
  const params = { tag: "prod" };
  await client.deleteTag({ params }, { ifMatch: '"7"', headers: { "If-Match": "not this" } });
  await client.deleteTag({ params });
  expect(server.requests.map(({ headers }) => headers["if-match"])).toEqual(['"7"', undefined]);
});

test("throws PreconditionFailedError if the object changed since it was read", async () => {
  const { server, client } = await start();
  server.script({ status: 412, headers: { etag: '"8"' }, body: { message: "revision is 8" } });
  const call = client.deleteTag({ params: { tag: "prod" } }, { ifMatch: '"7"' });
  const error = await failure(call, PreconditionFailedError);
  expect(error).toMatchObject({ name: "PreconditionFailedError", status: 412, outcome: "none" });
  expect(error.message).toContain("The object has changed since it was read (412): revision is 8");
});

test("a guarding client sends the header of the lockout guard only with operations that accept it", async () => {
  const { server, client } = await start();
  server.always({ status: 200 });
  const params = { key: "deploy" };
  const guarding = client.guarding();
  await guarding.deleteApiKey({ params });
  await guarding.deleteTag({ params: { tag: "prod" } });
  await client.deleteApiKey({ params });
  const sent = server.requests.map(({ headers }) => headers["gatehouse-lockout-guard"]);
  expect(sent).toEqual(["on", undefined, undefined]);
});

test.each([
  ["caller-removed", { lockout: "caller-removed" }],
  ["of-a-later-version", {}],
])("throws LockoutGuardError for the lockout %s", async (name, more) => {
  const { server, client } = await start();
  const headers = { "gatehouse-lockout-guard": name };
  server.script({ status: 409, headers, body: { message: "the write would lock out ana" } });
  const error = await failure(client.deleteApiKey({ params: { key: "deploy" } }), LockoutGuardError);
  expect(error).toMatchObject({ code: "lockout_guard", status: 409, outcome: "none", ...more });
  expect("lockout" in error.toJSON()).toBe("lockout" in more);
  expect(error.message).toContain("The lockout guard refuses the change (409): the write would lock out ana");
});

test("returns status and headers from call()", async () => {
  const { server, client } = await start();
  server.script({ headers: { "X-Total-Count": "7" }, body: ["a"] });
  const result = await client.call("getTags");
  expect(result).toMatchObject({ status: 200, headers: { "x-total-count": "7" }, body: ["a"] });
});

test.each([
  [400, ValidationError],
  [415, ValidationError],
  [422, ValidationError],
  [402, PermissionError],
  [403, PermissionError],
  [404, NotFoundError],
  [409, ConflictError],
  [406, RequestError],
  [412, PreconditionFailedError],
  [424, PaymentError],
  [500, ServerError],
  [302, ProtocolError],
])("maps %i to a %o with method, path, request id and outcome", async (status, kind) => {
  const { server, client } = await start();
  server.script({ status, headers: { "X-Request-ID": "r-1" }, body: { message: "because" } });
  const error = await failure(client.deleteTag({ params: { tag: "prod" } }), kind as typeof RequestError);
  expect(error).toMatchObject({
    operation: "deleteTag",
    method: "DELETE",
    path: "/api/tags/prod",
    status,
    requestId: "r-1",
    attempts: 1,
    outcome: [302, 500].includes(status) ? "unknown" : "none",
  });
  expect(error.message).toContain("r-1");
  expect(error.message).toContain(`${status}`);
  expect(isNotFound(error)).toBe(status === 404);
  expect(server.requests).toHaveLength(1);
});

test("keeps the payment gateway's code of a 424", async () => {
  const { server, client } = await start();
  server.script({ status: 424, body: { message: "declined", code: "card_declined\u001b[0m" } });
  const error = await failure(client.createSubscription(), PaymentError);
  expect(error).toMatchObject({
    status: 424,
    code: "payment",
    gatewayCode: "card_declined [0m",
    serverMessage: "declined",
  });
  server.script({ status: 424, body: { message: "declined", code: 7 } });
  expect((await failure(client.createSubscription(), PaymentError)).gatewayCode).toBeUndefined();
});

test.each([
  ["", NotFoundError],
  ["404 page not found\n", ProtocolError],
  [{ error: "no route" }, ProtocolError],
])("maps a 404 with the body %j to a %o", async (body, kind) => {
  const { server, client } = await start();
  server.script({ status: 404, body });
  const error = await failure(client.deleteTag({ params: { tag: "prod" } }), kind as typeof RequestError);
  expect(isNotFound(error)).toBe(kind === NotFoundError);
});

/** Sends a request that requires a user. */
const createApiKey = (client: Client) => client.createApiKey({ body: { name: "abc", expiresAt: 30 } });

test("keeps the field names of 400 and 409, in both response formats", async () => {
  const { server, client } = await start();
  server.script({ status: 409, body: ["email", "username"] });
  server.script({ status: 400, body: { message: "invalid entity", fields: { name: "required" } } });
  const conflict = await failure(client.updateUser({ body: { email: "a@b.c" } }), ConflictError);
  expect(conflict.fields).toEqual(["email", "username"]);
  const invalid = await failure(client.updateUser({ body: { name: "" } }), ValidationError);
  expect(invalid).toMatchObject({ fields: ["name"], serverMessage: "invalid entity" });
});

test("reports that an operation requires a user's credential if an API key gets a 403", async () => {
  const { server, client } = await start();
  server.script({ status: 403 });
  const error = await failure(createApiKey(client), PermissionError);
  expect(error.message).toContain("user's credential");
});

test("a 401 to an API key is a missing permission only if the server has accepted this key", async () => {
  const { server, client } = await start();
  server.script({ status: 401 });
  const unknown = await failure(createApiKey(client), AuthenticationError);
  expect(unknown.message).toContain(
    "The API key is not valid, or the request requires a user (401). Use a user's credential, not an API key",
  );
  server.script({ body: [] }, { status: 401 }, { status: 401 });
  await client.getTags();
  expect((await failure(createApiKey(client), PermissionError)).message).toContain("user's credential");
  await failure(client.getTags(), AuthenticationError);
});

test("removes control characters and HTML pages from a server's message", async () => {
  const { server, client } = await start();
  server.script({ status: 404, body: { message: `a\u001b[31mb${"x".repeat(2000)}` } });
  server.script({ status: 404, body: "<html>no</html>" });
  const error = await failure(client.deleteTag({ params: { tag: "prod" } }), NotFoundError);
  expect(error.serverMessage).toMatch(/^a \[31mbx+…$/);
  expect(error.serverMessage?.length).toBeLessThan(600);
  const html = await failure(client.deleteTag({ params: { tag: "prod" } }), ProtocolError);
  expect(html.serverMessage).toBeUndefined();
});

test.each([
  ["HTML", "<html>", { "content-type": "text/html" }, "text/html"],
  ["nothing", "", {}, "empty"],
  ["a list", [], {}, "array, not object"],
  ["null", "null", {}, "null, not object"],
])("rejects %s in place of an object as a ProtocolError", async (_, body, headers, words) => {
  const { server, client } = await start();
  server.script({ body, headers });
  const error = await failure(client.getNamespace({ params: { tenant: TENANT } }), ProtocolError);
  expect(error.message).toContain(words);
  expect(error.outcome).toBe("none");
});

test.each(["<html>", {}, { status: "ok" }, []])(
  "reports the outcome unknown for a creation with the response %j of a proxy, and does not repeat the creation",
  async (body) => {
    const { server, client } = await start();
    server.script({ body });
    expect((await failure(createKey(client), ProtocolError)).outcome).toBe("unknown");
    expect(server.requests).toHaveLength(1);
  },
);

test("reports whether a response proves that this project's service sent it, by its body and not by its headers", async () => {
  const { server, client } = await start();
  const witnessed: boolean[] = [];
  const sources: unknown[] = [];
  const writer = client.witnessing(({ isFromService, source }) => {
    witnessed.push(isFromService);
    sources.push(source.headers);
  });
  const proxy = { "content-type": "text/html", etag: '"r"', "x-request-id": "r", server: "nginx" };
  server.script({ body: { code: "gatehouse_deleted" } }, { headers: proxy, body: "<html>" }, { status: 204 });
  for (let count = 0; count < 3; count += 1) await writer.deleteTag({ params: { tag: "prod" } });
  server.script({ body: wireKey }, { body: { ...wireKey, revision: "r" } });
  for (let count = 0; count < 2; count += 1) await createKey(writer);
  server.script({ body: [] });
  await writer.getTags();
  expect(witnessed).toEqual([true, false, false, false, true]);
  expect(sources[1]).toEqual({ server: "nginx", "content-type": "text/html" });
  const missing = (body: unknown) => {
    server.script({ status: 404, headers: proxy, body });
    return failure(client.deleteTag({ params: { tag: "prod" } }), NotFoundError);
  };
  expect((await missing({ message: "no such tag", code: "gatehouse_not_found" })).isFromService).toBe(true);
  expect(await missing({ message: "no Route matched", code: "not_found" })).toMatchObject({
    isFromService: false,
    source: { status: 404, headers: { server: "nginx" } },
  });
});

test("reports the target of a redirect without the credentials and the query in the address", async () => {
  const { server, client } = await start();
  server.script({ status: 301, headers: { location: "https://u:pw@other.example/x?token=abc" } });
  const error = await failure(client.getTags(), ProtocolError);
  expect(error.message).toContain("https://other.example.");
  expect(error.message).not.toMatch(/pw|abc/);
});

test("accepts an empty response to leaveNamespace", async () => {
  const { server, client } = await start();
  server.script({});
  expect(await client.leaveNamespace({ params: { tenant: TENANT } })).toBeUndefined();
});

test("rejects a response that exceeds maxResponseSize", async () => {
  const { server, client } = await start({ maxResponseSize: 1000 });
  server.script({ body: ["x".repeat(2000)] });
  const error = await failure(client.getTags(), ProtocolError);
  expect(error.message).toContain("The response is larger than 1000 bytes");
  expect(error).toMatchObject({ limit: { kind: "size", most: 1000 } });
});

test.each([
  "not a url",
  "ftp://host",
  "https://user:hunter2@host",
  "https://host/?token=hunter2",
  "https://host/#hunter2",
])("rejects the URL %s without printing it", (url) => {
  expect(() => createClient({ url })).toThrow(ConfigurationError);
  expect(() => createClient({ url })).not.toThrow(/hunter2/);
});
