import { afterAll, beforeAll, expect, test } from "vitest";
import { startService, type TestService } from "../../support/service.ts";

let service: TestService;
let credentials: { username: string; password: string };
beforeAll(async () => {
  service = await startService();
  credentials = await service.setup();
});
afterAll(async () => {
  await service.stop();
});

const request = async (
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
) => {
  const response = await fetch(service.url + path, {
    method,
    headers: { ...(body !== undefined && { "content-type": "application/json" }), ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    body: text === "" ? undefined : JSON.parse(text),
  };
};

test("the service as its users run it: log in, make a key, use it, revoke it", async () => {
  const session = await request("POST", "/api/login", credentials);
  expect(session.status).toBe(200);
  const authorization = { authorization: `Bearer ${session.body.token}` };
  const key = await request(
    "POST",
    "/api/namespaces/api-key",
    { name: "ci-key", expires_at: 30 },
    authorization,
  );
  expect(key.status).toBe(200);
  const list = () => request("GET", "/api/devices", undefined, { "x-api-key": key.body.id });
  expect((await list()).headers.get("x-total-count")).toBe("0");
  expect((await request("DELETE", "/api/namespaces/api-key/ci-key", undefined, authorization)).status).toBe(
    200,
  );
  expect((await list()).status).toBe(401);
});

test("every request leaves one line in the log, with its id and without its secrets", async () => {
  const wrong = { ...credentials, password: "a-wrong-password" };
  const secret = "c2a1f0de-7a51-4f2e-9c0b-2f7d5b8e4a10";
  const answer = await request("POST", "/api/login?token=in-the-url", wrong, {
    "x-api-key": secret,
    authorization: "Bearer in-the-header",
  });
  expect(answer.status).toBe(401);
  const id = answer.headers.get("x-request-id");
  const linesOf = () => service.logs().filter((line) => line.reqId === id);
  await expect.poll(() => linesOf().length).toBe(1);
  expect(linesOf()[0]).toMatchObject({
    msg: "request",
    statusCode: 401,
    req: { method: "POST", remoteAddress: "127.0.0.1" },
  });
  for (const text of [credentials.password, "a-wrong-password", secret, "in-the-url", "in-the-header"]) {
    expect(service.output()).not.toContain(text);
  }
});
